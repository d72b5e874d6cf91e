import { AppError, notFound } from "./errors.ts";
import type { Gateway } from "./gateway/gateway.ts";
import { type Caller, hasRole } from "./tenancy/roles.ts";

/** Most bytes of an agent's or a workflow's definition, as JSON: each run keeps a copy of it. */
const MAX_DEFINITION_BYTES = 256 * 1_024;
/** Longest description that a list shows, in characters. */
const MAX_SHOWN_DESCRIPTION = 300;
/** Concurrent changes of one definition after which a replacement without a version gives up. */
const REPLACE_ATTEMPTS = 5;

/** The record of an agent or a workflow, as far as they are alike. */
type DefinitionRecord = { version: number; createdBy: string; createdAt: Date; updatedAt: Date };
type DefinitionStore<R, C> = {
  get(tenantId: string, id: string): Promise<R | null>;
  replace(tenantId: string, id: string, next: { version: number; change: C }): Promise<R | null>;
  remove(tenantId: string, id: string): Promise<boolean>;
};

/**
 * Definitions of one kind, under the rule of both: members change and remove their own, admins those of others too. All throw
 * AppError `not_found`.
 */
export function keepDefinitions<R extends DefinitionRecord, C>(
  what: "agent" | "workflow",
  store: DefinitionStore<R, C>,
) {
  const find = async (tenantId: string, id: string): Promise<R> => {
    const record = await store.get(tenantId, id);
    if (!record) throw notFound(what);
    return record;
  };
  /** @throws AppError `insufficient_role`. */
  const findToChange = async (caller: Caller, id: string): Promise<R> => {
    const record = await find(caller.tenantId, id);
    if (record.createdBy === caller.subject || hasRole(caller.role, "admin")) return record;
    throw new AppError("insufficient_role", `Only an admin changes the ${what}s of others.`);
  };
  return {
    find,
    findToChange,
    /** Replaces the version `expected`, or whichever is current. @throws AppError `wrong_state` for another version. */
    async replace(tenantId: string, id: string, { expected, change }: { expected: number | undefined; change: C }) {
      for (let attempt = 0; attempt < REPLACE_ATTEMPTS; attempt += 1) {
        const { version } = await find(tenantId, id);
        if (expected !== undefined && expected !== version) {
          throw new AppError("wrong_state", `The ${what} is at version ${version}.`, { details: { version } });
        }
        const replaced = await store.replace(tenantId, id, { version, change });
        if (replaced) return replaced;
      }
      throw new AppError("wrong_state", `Others are changing the ${what} at the same time.`);
    },
    /** @throws AppError `insufficient_role`. */
    async remove(caller: Caller, id: string): Promise<void> {
      await findToChange(caller, id);
      if (!(await store.remove(caller.tenantId, id))) throw notFound(what);
    },
  };
}

/** What the record of a new definition says besides the definition. */
export function firstVersion({ tenantId, subject: createdBy }: Caller) {
  const now = new Date();
  return { tenantId, version: 1, createdBy, createdAt: now, updatedAt: now };
}

/** What a definition's record says besides the definition, as it is read back. */
export function toVersionView({ version, createdBy, createdAt, updatedAt }: DefinitionRecord) {
  return { version, createdBy, createdAt: createdAt.toISOString(), updatedAt: updatedAt.toISOString() };
}

/** @throws AppError `invalid_request` for a definition that is larger than 256 KiB; `param` names the field to shorten. */
export function checkDefinitionSize(definition: object, param: string): void {
  const bytes = Buffer.byteLength(JSON.stringify(definition));
  if (bytes <= MAX_DEFINITION_BYTES) return;
  const message = `The definition has ${bytes} bytes as JSON; ${MAX_DEFINITION_BYTES} is the most.`;
  throw new AppError("invalid_request", message, { param });
}

/** @throws AppError `unknown_model` for a name that is no chat model; `param` names the field that holds it. */
export function checkChatModel(gateway: Pick<Gateway, "findModel">, model: string, param: string): void {
  const type = model === "auto" ? "chat" : gateway.findModel(model)?.type;
  if (type !== undefined && type !== "embedding") return;
  throw new AppError("unknown_model", `There is no chat model ${model}; GET /ai/models lists them.`, { param });
}

/** A description as lists show it, at most 300 characters and a mark that it was cut. */
export function shortDescription(text: string | undefined): string | undefined {
  if (text === undefined || text.length <= MAX_SHOWN_DESCRIPTION) return text;
  const cut = text.slice(0, MAX_SHOWN_DESCRIPTION);
  return `${cut.isWellFormed() ? cut : cut.slice(0, -1)}…`; // not half a surrogate pair
}
