import { AppError } from "../lib/errors.ts";
import { type Role, roles, type StoredCaller } from "../store/key-store.ts";

/** The caller: resolved from the key of the request, never from a header or body. */
export type Caller = {
  tenantId: string;
  /** The tenant that made its tenant, if one did. */
  rootTenantId?: string;
  keyId: string;
  /** The acting person or service, as given when the key was made; recorded with what it decides. */
  subject: string;
  role: Role;
  /** The collections of documents that the key is limited to; undefined: all. */
  collections: readonly string[] | undefined;
  /** What its key may spend in a month, in USD, beside the budget of its tenant. Absent: no limit of its own. */
  keyBudgetUsd?: number | undefined;
  /** When its key or access token ends; keys that it makes end with it. Absent: never. */
  expiresAt?: Date;
  /** Set when the key is a widget's: it only chats, whatever its role. */
  widget?: WidgetScope;
};

/** What a widget key may be used for, besides that it only chats. */
export type WidgetScope = {
  agentId?: string;
  allowedOrigins?: readonly string[];
  models?: readonly string[];
  maxTokens?: number;
  /** Set if it answers from documents, and to the origins of which sources it links. */
  answersFrom?: { linkOrigins: readonly string[] };
};

/** What the record of a run keeps of its caller. */
export const toStoredCaller = ({
  keyId,
  subject,
  role,
  collections,
  keyBudgetUsd,
}: Omit<Caller, "tenantId" | "expiresAt">): StoredCaller => ({
  keyId,
  subject,
  role,
  ...(collections === undefined ? {} : { collections }),
  ...(keyBudgetUsd === undefined ? {} : { keyBudgetUsd }),
});

/** The caller whose run it is. */
export const fromStoredCaller = (tenantId: string, { collections, ...stored }: StoredCaller): Caller => ({
  tenantId,
  ...stored,
  collections,
});

/** The tenant whose rate, places and memory a caller's requests take. */
export const rootOf = ({ tenantId, rootTenantId = tenantId }: Pick<Caller, "tenantId" | "rootTenantId">) =>
  rootTenantId;

/** When a key that the caller makes ends: with the caller at the latest. @throws AppError `insufficient_scope` for a later end. */
export function endOfMadeKey({ expiresAt: end }: Pick<Caller, "expiresAt">, wanted?: Date): Date | undefined {
  if (end === undefined || wanted === undefined) return wanted ?? end;
  if (wanted <= end) return wanted;
  const message = `expiresAt: your own key ends at ${end.toISOString()}; what it makes ends no later.`;
  throw new AppError("insufficient_scope", message, { param: "expiresAt" });
}

/** How the record of a job names who started it. */
export const starterOf = ({ subject: startedBy, keyId }: Pick<Caller, "subject" | "keyId">) => ({ startedBy, keyId });

/** Who asks for something that was started by a key. */
export type Viewer = Pick<Caller, "tenantId" | "keyId" | "collections">;

/** The key whose work alone a caller sees: its own, if it is limited to collections. Undefined: all of the tenant. */
export const ownKeyOf = ({ collections, keyId }: Viewer) => (collections === undefined ? undefined : keyId);

/**
 * Whether a caller may see and cancel what a key started. A key that is limited to collections sees its own alone, since what
 * others made may hold documents that it must not read.
 */
export function maySee(caller: Viewer, startedByKey: string | undefined): boolean {
  const own = ownKeyOf(caller);
  return own === undefined || own === startedByKey;
}

/** @throws AppError `insufficient_scope` for a key that is limited to collections: what it asks for concerns all of them. */
export function requireUnlimited({ collections }: Pick<Caller, "collections">): void {
  if (collections === undefined) return;
  throw new AppError("insufficient_scope", "This needs a key that is not limited to collections.");
}

/** Whether `role` is at least `needed`. */
export function hasRole(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed);
}
