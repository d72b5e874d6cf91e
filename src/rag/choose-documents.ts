import { invalidRequest } from "../errors.ts";
import { type CollectionNames, collectionOf } from "../store/collection-filter.ts";
import type { Caller } from "../tenancy/roles.ts";
import { chooseCollections } from "./collections.ts";
import type { RagDeps } from "./deps.ts";
import { type QueryInput, tagsOf } from "./schemas.ts";

const MAX_FILTERED_DOCUMENTS = 5_000; // a filter that matches more is rejected

/** What a query is limited to, beside the tenant: some documents, or all of some collections. */
export type Chosen = { documentIds?: string[]; collections?: CollectionNames };

/**
 * Returns what a query is limited to.
 * @throws AppError `invalid_request` when too many documents match the filter; `insufficient_scope` for a foreign collection.
 */
export async function chooseDocuments(
  { store }: Pick<RagDeps, "store">,
  caller: Pick<Caller, "tenantId" | "collections">,
  { documentIds, filter, collection }: Pick<QueryInput, "documentIds" | "filter" | "collection">,
): Promise<Chosen> {
  const { tenantId } = caller;
  const collections = chooseCollections(caller, collection);
  if (!filter || Object.keys(filter).length === 0) {
    if (documentIds === undefined) return { collections };
    return { documentIds: await inThese({ store }, tenantId, { documentIds, collections }) };
  }
  const groups = Object.entries(filter).map(([key, value]) => [value].flat().flatMap((one) => tagsOf({ [key]: one })));
  const limit = MAX_FILTERED_DOCUMENTS + 1;
  const found = await store.documents.idsByTags(tenantId, { groups, collections, limit });
  if (found.length > MAX_FILTERED_DOCUMENTS) {
    throw invalidRequest("filter", `More than ${MAX_FILTERED_DOCUMENTS} documents match the filter.`);
  }
  const wanted = documentIds && new Set(documentIds);
  return { documentIds: wanted ? found.filter((id) => wanted.has(id)) : found };
}

/** Those of the documents that are in one of the collections. */
async function inThese(
  { store }: Pick<RagDeps, "store">,
  tenantId: string,
  { documentIds, collections }: { documentIds: string[]; collections: CollectionNames },
): Promise<string[]> {
  if (collections === undefined) return documentIds;
  const headers = await store.documents.headers(tenantId, documentIds);
  return headers.filter((header) => collections.includes(collectionOf(header))).map(({ _id }) => _id);
}
