import { AppError, notFound } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import { DEFAULT_COLLECTION } from "../store/collection-filter.ts";
import type { CollectionRecord } from "../store/collection-store.ts";
import type { Caller } from "../tenancy/roles.ts";
import { type CollectionChoice, chooseCollections, mayUse } from "./collections.ts";
import type { RagDeps } from "./deps.ts";

type Deps = Pick<RagDeps, "store" | "quotas">;

/** The record of a new collection. */
export function newCollection(tenantId: string, name: string): CollectionRecord {
  const now = new Date();
  return { _id: newId("vectorStore"), tenantId, name, lastActiveAt: now, createdAt: now, updatedAt: now };
}

/** Whether it has expired, even if the sweep has not removed it yet. */
export const hasExpired = ({ expireAt }: Pick<CollectionRecord, "expireAt">) =>
  expireAt !== undefined && expireAt.getTime() <= Date.now();

/**
 * Makes sure that a collection is there, for a document that goes to it; makes one unless it `mustExist`. `default` always is.
 * @throws AppError `quota_exceeded`; `not_found`; `wrong_state` while one of this name is deleted, or after it has expired.
 */
export async function ensureCollection(
  { store, quotas }: Deps,
  { tenantId, name, mustExist }: { tenantId: string; name: string; mustExist: boolean },
): Promise<void> {
  if (name === DEFAULT_COLLECTION) return;
  const known = await store.collections.findAny(tenantId, name);
  if (known) return requireOpen(known);
  if (mustExist) throw notFound("vector store");
  await quotas.check(tenantId, "collections");
  await store.collections.insert(newCollection(tenantId, name)); // or another call has just created it
}

function requireOpen(record: CollectionRecord): void {
  const problem = record.isDeleting ? "is being deleted" : hasExpired(record) && "has expired";
  if (problem) throw new AppError("wrong_state", `The collection ${record.name} ${problem}.`, { param: "collection" });
}

/**
 * Makes sure that the collections which a query, a tool or a step names are there: a misspelt one would find nothing. `param` is
 * the field. @throws AppError `not_found`; `insufficient_scope`.
 */
export async function requireCollections(
  { store }: { store: Pick<Deps["store"], "collections"> },
  caller: { tenantId: string; collections?: Caller["collections"] },
  { wanted, param = "collection" }: { wanted: CollectionChoice | undefined; param?: string },
): Promise<void> {
  if (wanted === undefined) return;
  const names =
    chooseCollections({ collections: caller.collections }, wanted)?.filter((name) => name !== DEFAULT_COLLECTION) ?? [];
  if (names.length === 0) return;
  const known = await store.collections.known(caller.tenantId, names);
  const missing = names.find((name) => !known.includes(name));
  if (missing === undefined) return;
  throw new AppError("not_found", `There is no collection ${missing}; GET /rag/collections lists them.`, { param });
}

/** A collection that a caller may use. `default` exists even if nothing has been stored. @throws AppError `not_found`. */
export async function findCollection(
  { store }: Pick<Deps, "store">,
  caller: Pick<Caller, "tenantId" | "collections">,
  name: string,
) {
  const { tenantId } = caller;
  const found = mayUse(caller, { collection: name }) ? await store.collections.find(tenantId, name) : null;
  if (found) return found;
  if (name !== DEFAULT_COLLECTION || !mayUse(caller, {})) throw notFound("vector store");
  return { ...newCollection(tenantId, name), createdAt: new Date(0), lastActiveAt: new Date(0) };
}
