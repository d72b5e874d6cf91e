import { defined } from "../defined.ts";
import { invalidRequest } from "../errors.ts";
import { type CollectionNames, collectionOf } from "../store/collection-filter.ts";
import type { DocumentMetadata } from "../store/document-record.ts";
import type { Caller } from "../tenancy/roles.ts";
import { chooseCollections } from "./collections.ts";
import type { RagDeps } from "./deps.ts";
import { type AttributeFilter, fulfils, isOfValues, requiredValues, toAttributeFilter } from "./metadata-filter.ts";
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
  {
    documentIds,
    filter,
    collection,
    attributes,
  }: Pick<QueryInput, "documentIds" | "filter" | "collection" | "attributes">,
  /** Waits for the turn to look at many documents one by one, and answers how it ends. */
  enterScan: () => Promise<() => void>,
): Promise<Chosen> {
  const { tenantId } = caller;
  const collections = chooseCollections(caller, collection);
  const given = [...(attributes ? [attributes] : []), ...(isEmpty(filter) ? [] : [toAttributeFilter(filter)])];
  if (given.length === 0) {
    if (documentIds === undefined) return { collections };
    return { documentIds: await inThese({ store }, tenantId, { documentIds, collections }) };
  }
  const all: AttributeFilter = { type: "and", filters: given };
  const groups = requiredValues(all).map(({ key, values }) => values.flatMap((value) => tagsOf({ [key]: value })));
  const limit = MAX_FILTERED_DOCUMENTS + 1;
  const matches = isOfValues(all) ? undefined : (metadata: DocumentMetadata) => fulfils(metadata, all);
  const leave = matches && (await enterScan());
  const search = { groups, collections, limit, ...defined({ matches }) };
  const found = await store.documents.idsByTags(tenantId, search).finally(leave);
  if (found.length > MAX_FILTERED_DOCUMENTS) {
    throw invalidRequest("filter", `More than ${MAX_FILTERED_DOCUMENTS} documents match the filter.`);
  }
  const wanted = documentIds && new Set(documentIds);
  return { documentIds: wanted ? found.filter((id) => wanted.has(id)) : found };
}

function isEmpty(filter: QueryInput["filter"]): filter is undefined {
  return filter === undefined || Object.keys(filter).length === 0;
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
