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
  /** Set when the key is a widget's: it only chats, whatever its role. */
  widget?: WidgetScope;
};

/** What a widget key may be used for, besides that it only chats. */
export type WidgetScope = {
  agentId?: string;
  allowedOrigins?: readonly string[];
  models?: readonly string[];
  maxTokens?: number;
};

/** What the record of a run keeps of its caller. */
export const toStoredCaller = ({ keyId, subject, role, collections }: Omit<Caller, "tenantId">): StoredCaller => ({
  keyId,
  subject,
  role,
  ...(collections === undefined ? {} : { collections }),
});

/** The caller whose run it is. */
export const fromStoredCaller = (tenantId: string, { collections, ...stored }: StoredCaller): Caller => ({
  tenantId,
  ...stored,
  collections,
});

/** The tenant whose rate, places and memory a caller's requests take. */
export const rootOf = ({ tenantId, rootTenantId = tenantId }: Caller) => rootTenantId;

/** Whether `role` is at least `needed`. */
export function hasRole(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed);
}
