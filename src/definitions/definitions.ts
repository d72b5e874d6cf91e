import { z } from "zod";
import type { Gateway } from "../gateway/gateway.ts";
import { toView } from "../lib/defined.ts";
import { AppError, invalidRequest, notFound } from "../lib/errors.ts";
import { idOfCall } from "../net/call-scope.ts";
import type { DefinitionVersionStore } from "../store/definition-version-store.ts";
import { mapPage, type Page, type PageQuery } from "../store/page.ts";
import type { VersionedRecord } from "../store/records.ts";
import { type Caller, hasRole, requireUnlimited } from "../tenancy/roles.ts";
import { changeOf, makeHistory } from "./definition-history.ts";
import type { ToolNames } from "./tool-names.ts";

/** Most bytes of an agent's or a workflow's definition, as JSON: each run keeps a copy of it. */
const MAX_DEFINITION_BYTES = 256 * 1_024;
/** Longest description that a list shows, in characters. */
const MAX_SHOWN_DESCRIPTION = 300;
/** Concurrent changes of one definition after which a replacement without a version gives up. */
const REPLACE_ATTEMPTS = 5;

/** The record of an agent or a workflow: what both have, and `C`, what a replacement changes. */
type DefinitionRecord<C> = C & VersionedRecord;
type DefinitionStore<C, P> = {
  insert(record: DefinitionRecord<C>): Promise<void>;
  get(tenantId: string, id: string): Promise<DefinitionRecord<C> | null>;
  list(tenantId: string, page: PageQuery): Promise<Page<P>>;
  replace(tenantId: string, id: string, next: { version: number; change: C }): Promise<DefinitionRecord<C> | null>;
  remove(tenantId: string, id: string): Promise<boolean>;
};
/** What replaces a version: whichever is current, unless `expected` names one. */
type Replacement<C> = { change: C; expected: number | undefined };
/** A body that may name the version that it replaces. */
type Versioned = { version?: number | undefined };

/** What a kind says of itself: `B` are the bodies of replacements, `V` a definition as it is read back, `S` one in a list. */
type DefinitionKind<B extends Versioned, V, S, C, P> = {
  what: "agent" | "workflow" | "tool" | "schedule" | "trigger" | "webhook";
  store: DefinitionStore<C, P>;
  /** Where its versions are kept; absent: the current one alone. */
  versions?: DefinitionVersionStore;
  toolNames: ToolNames;
  /** @throws AppError `quota_exceeded` when the tenant may have no more. */
  checkQuota?(tenantId: string): Promise<unknown>;
  /** Whether a definition finds only what its author may read, whoever uses it. */
  isOfItsCollections?: true;
  /** The name of the tool that a definition is, if it is one; absent: none is. */
  publishedAs?(change: C): string | undefined;
  /** The field of a body that holds it; default: `publish.name`. */
  nameField?: string;
  /** Checks a body; what is stored of it, in the place of `earlier`. @throws AppError as `create`. */
  toChange(caller: Caller, body: Omit<B, "version">, earlier: C | undefined): Promise<C>;
  /** What to check and store so that an old version holds again, in the place of the current one. */
  toRestored?(old: C, current: C): { body: Omit<B, "version">; earlier: C };
  toView(record: DefinitionRecord<C>): V;
  toSummary(record: P): S;
};

export type Definitions<B extends Versioned, V, S> = ReturnType<typeof makeDefinitions<B, V, S, unknown, unknown>>;

/** Definitions of one kind, under the rule of both: members change and remove their own, admins those of others too. */
export function makeDefinitions<B extends Versioned, V, S, C, P>(kind: DefinitionKind<B, V, S, C, P>) {
  const { what, store } = kind;
  const find = makeFind(kind);
  const { requireChange, nameFor } = makeRights(kind);
  const findToChange = async (caller: Caller, id: string) => requireChange(caller, await find(caller.tenantId, id));
  const history = makeHistory<C>(kind.versions);
  const put = async ({ tenantId, subject }: Caller, id: string, { expected, change }: Replacement<C>) => {
    for (let attempt = 0; attempt < REPLACE_ATTEMPTS; attempt += 1) {
      const record = await find(tenantId, id);
      const { version } = record;
      if (expected !== undefined && expected !== version) {
        throw new AppError("wrong_state", `The ${what} is at version ${version}.`, { details: { version } });
      }
      await history.keep(record); // where an earlier release, or a process that ended, has not
      const replaced = await store.replace(tenantId, id, { version, change });
      if (!replaced) continue;
      await history.keep(replaced, subject);
      return kind.toView(replaced);
    }
    throw new AppError("wrong_state", `Others are changing the ${what} at the same time.`);
  };
  /** Puts a change in the place of the current record, under the name that it publishes. */
  const write = (caller: Caller, current: DefinitionRecord<C>, next: Replacement<C>): Promise<V> => {
    const { _id: id, tenantId } = current;
    const tool = { tenantId, ownerId: id, name: nameFor(caller, next.change), earlier: kind.publishedAs?.(current) };
    return kind.toolNames.hold({ ...tool, field: kind.nameField }, () => put(caller, id, next));
  };
  return {
    /** @throws AppError `invalid_request`, `unknown_model`, `source_refused` with the field's `param`; `quota_exceeded`. */
    async create(caller: Caller, body: Omit<B, "version">): Promise<V> {
      const { tenantId, subject: createdBy } = caller;
      const { id: _id, mayBeThere } = idOfCall(what);
      const made = mayBeThere ? await store.get(tenantId, _id) : null;
      if (made) return kind.toView(made);
      const change = await kind.toChange(caller, body, undefined);
      const name = nameFor(caller, change);
      await kind.checkQuota?.(tenantId);
      const now = new Date();
      const record = { ...change, _id, tenantId, version: 1, createdBy, createdAt: now, updatedAt: now };
      const tool = { tenantId, ownerId: _id, name, earlier: undefined };
      await kind.toolNames.hold({ ...tool, field: kind.nameField }, () => store.insert(record));
      await history.keep(record, createdBy);
      return kind.toView(record);
    },
    /** The newest first. */
    list: async (tenantId: string, page: PageQuery): Promise<Page<S>> =>
      mapPage(await store.list(tenantId, page), kind.toSummary),
    /** The record of one. @throws AppError `not_found`. */
    find,
    /** @throws AppError `not_found`. */
    get: async (tenantId: string, id: string): Promise<V> => kind.toView(await find(tenantId, id)),
    /**
     * The next version, in the place of the one that the body names, or of whichever is current.
     * @throws AppError `not_found`, `insufficient_role`, `wrong_state` (another version), and as `create`.
     */
    async replace(caller: Caller, id: string, { version: expected, ...body }: B): Promise<V> {
      const current = await findToChange(caller, id);
      return write(caller, current, { change: await kind.toChange(caller, body, current), expected });
    },
    /** The versions that are kept, the newest first. @throws AppError `not_found`. */
    versions: async (tenantId: string, id: string) => history.list(await find(tenantId, id)),
    /** A definition as it was at a version. @throws AppError `not_found`. */
    version: async (tenantId: string, id: string, version: number): Promise<V> =>
      kind.toView(await history.find(await find(tenantId, id), version)),
    /** Makes an old version the next one, after the checks of `replace`. @throws AppError as `replace`. */
    async restore(caller: Caller, id: string, version: number): Promise<V> {
      const current = await findToChange(caller, id);
      const old = await history.find(current, version);
      const restored = kind.toRestored?.(changeOf(old), changeOf(current));
      if (current.version === version || !restored)
        throw new AppError("wrong_state", `The ${what} is at version ${current.version}.`);
      const change = await kind.toChange(caller, restored.body, restored.earlier);
      return write(caller, current, { change, expected: current.version });
    },
    /** Its runs continue, and stay. @throws AppError `not_found`, `insufficient_role`. */
    async remove(caller: Caller, id: string): Promise<void> {
      const current = await findToChange(caller, id);
      const about = { tenantId: caller.tenantId, ownerId: id, name: undefined, earlier: kind.publishedAs?.(current) };
      await kind.toolNames.hold(about, async () => {
        if (!(await store.remove(caller.tenantId, id))) throw notFound(what);
        await kind.versions?.removeAll(caller.tenantId, id);
      });
    },
  };
}

function makeFind<C>({
  what,
  store,
}: {
  what: Parameters<typeof notFound>[0];
  store: Pick<DefinitionStore<C, never>, "get">;
}) {
  return async (tenantId: string, id: string): Promise<DefinitionRecord<C>> => {
    const record = await store.get(tenantId, id);
    if (!record) throw notFound(what);
    return record;
  };
}

/**
 * What a caller may do to a definition. Others run it with rights of their own, and it may send what it reads to its author: so
 * a key that is limited to collections changes its own alone, and publishes none.
 */
function makeRights<C>(
  kind: Pick<DefinitionKind<never, unknown, unknown, C, never>, "what" | "isOfItsCollections" | "publishedAs">,
) {
  return {
    /** The definition. @throws AppError `insufficient_role`, `insufficient_scope` if the caller may not change this one. */
    requireChange<R extends { createdBy: string }>(caller: Caller, record: R): R {
      if (record.createdBy === caller.subject) return record;
      if (!hasRole(caller.role, "admin"))
        throw new AppError("insufficient_role", `Only an admin changes the ${kind.what}s of others.`);
      if (!kind.isOfItsCollections) requireUnlimited(caller);
      return record;
    },
    /** The name that a change is published under. @throws AppError `insufficient_scope`. */
    nameFor(caller: Caller, change: C): string | undefined {
      const name = kind.publishedAs?.(change);
      if (name !== undefined && !kind.isOfItsCollections) requireUnlimited(caller);
      return name;
    },
  };
}

/** What a tenant may have of kinds without a setting of their own: schedules, triggers, event sources, each. */
const MAX_OF_A_KIND = 1_000;

/** @throws AppError `quota_exceeded` when the tenant has as many of a kind as it may. */
export async function checkRoom(
  what: string,
  of: { store: { count(tenantId: string, limit: number): Promise<number> }; tenantId: string; most?: number },
): Promise<void> {
  const { store, tenantId, most = MAX_OF_A_KIND } = of;
  if ((await store.count(tenantId, most)) < most) return;
  throw new AppError("quota_exceeded", `A tenant may have ${most} ${what}. Delete some first.`, {
    details: { limit: most },
  });
}

/** The schema of a replacement's body, by that of the body of a new definition. */
export function replacementOf<S extends z.ZodRawShape>(what: string, body: z.ZodObject<S>) {
  const description = `Refused with 409 when the ${what} is at another version`;
  return body.extend({ version: z.number().int().min(1).optional().describe(description) });
}

/** What a definition shows of its record, besides the definition. */
export const versionFields = {
  version: z.number().int(),
  createdBy: z.string(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
};

/** The schema of the versions of a definition, in a list. */
export const versionSummarySchema = z.object({
  version: z.number().int(),
  by: z.string().optional().describe("Who wrote it, where that is known"),
  at: z.iso.datetime(),
  bytes: z.number().int().min(0),
});

/** The values of `versionFields`. */
export function toVersionView(record: Pick<DefinitionRecord<unknown>, keyof typeof versionFields>) {
  const { version, createdBy, createdAt, updatedAt } = record;
  return toView({ version, createdBy, createdAt, updatedAt });
}

/** @throws AppError `invalid_request` for a definition that is larger than 256 KiB; `param` names the field to shorten. */
export function checkDefinitionSize(definition: object, param: string): void {
  const bytes = Buffer.byteLength(JSON.stringify(definition));
  if (bytes <= MAX_DEFINITION_BYTES) return;
  const message = `The definition has ${bytes} bytes as JSON; ${MAX_DEFINITION_BYTES} is the most.`;
  throw invalidRequest(param, message);
}

/** @throws AppError `unknown_model` for a name that is no chat model; `param` names the field that holds it. */
export async function checkChatModel(
  gateway: Pick<Gateway, "findModel">,
  { tenantId, model, param }: { tenantId: string; model: string; param: string },
): Promise<void> {
  const type = model === "auto" ? "chat" : (await gateway.findModel(tenantId, model))?.type;
  if (type !== undefined && type !== "embedding" && type !== "rerank") return;
  throw new AppError("unknown_model", `There is no chat model ${model}; GET /ai/models lists them.`, { param });
}

/** A description as lists show it, at most 300 characters and a mark that it was cut. */
export function shortDescription(text: string | undefined): string | undefined {
  if (text === undefined || text.length <= MAX_SHOWN_DESCRIPTION) return text;
  const cut = text.slice(0, MAX_SHOWN_DESCRIPTION);
  return `${cut.isWellFormed() ? cut : cut.slice(0, -1)}…`; // not half a surrogate pair
}
