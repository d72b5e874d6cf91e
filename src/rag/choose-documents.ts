import { defined } from "../lib/defined.ts";
import { invalidRequest } from "../lib/errors.ts";
import { type CollectionNames, collectionOf } from "../store/collection-filter.ts";
import type { DocumentMetadata } from "../store/document-record.ts";
import type { Caller } from "../tenancy/roles.ts";
import { chooseCollections } from "./collections.ts";
import type { RagDeps } from "./deps.ts";
import { type AttributeFilter, fulfils, isOfValues, requiredValues, toAttributeFilter } from "./metadata-filter.ts";
import type { QueryInput } from "./query-schemas.ts";
import { tagsOf } from "./schemas.ts";

/** Maximum documents that a filter may match; a filter that matches more is rejected. */
const MAX_FILTERED_DOCUMENTS = 5_000;
/**
 * Maximum documents that are examined one by one for a filter; a filter that needs more is rejected. It is the usual quota of a
 * tenant.
 */
const MAX_SCANNED_DOCUMENTS = 100_000;

type Where = Pick<QueryInput, "documentIds" | "filter" | "collection" | "attributes">;

/** The documents or collections that a query is limited to, within the tenant. */
export type Chosen = { documentIds?: string[]; collections?: CollectionNames };

/**
 * Returns what a query is limited to.
 * @throws AppError `invalid_request` when too many documents match the filter, or must be looked at for it;
 * `insufficient_scope` for a foreign collection.
 */
export async function chooseDocuments(
  { store }: Pick<RagDeps, "store">,
  caller: Pick<Caller, "tenantId" | "collections">,
  where: Where,
  /** Waits for the turn to examine many documents one by one. Returns the function that ends the turn. */
  enterScan: () => Promise<() => void>,
): Promise<Chosen> {
  const { tenantId } = caller;
  const { documentIds } = where;
  const collections = chooseCollections(caller, where.collection);
  const wanted = conditionsOf(where);
  if (documentIds !== undefined)
    return { documentIds: await amongThese({ store }, tenantId, { documentIds, collections, wanted }) };
  if (wanted === undefined) return { collections };
  const groups = requiredValues(wanted).map(({ key, values }) => values.flatMap((value) => tagsOf({ [key]: value })));
  const limit = MAX_FILTERED_DOCUMENTS + 1;
  const matches = (metadata: DocumentMetadata) => fulfils(metadata, wanted);
  const scan = isOfValues(wanted) ? undefined : { matches, most: MAX_SCANNED_DOCUMENTS };
  const leave = scan && (await enterScan());
  const search = { groups, collections, limit, ...defined({ scan }) };
  const { ids, isCut } = await store.documents.idsByTags(tenantId, search).finally(leave);
  if (ids.length > MAX_FILTERED_DOCUMENTS)
    throw invalidRequest("filter", `More than ${MAX_FILTERED_DOCUMENTS} documents match the filter.`);
  if (isCut) throw invalidRequest("filter", tooManyScanned);
  return { documentIds: ids };
}

/** The condition on a query's documents; undefined: none. */
export function conditionsOf({
  filter,
  attributes,
}: Pick<Where, "filter" | "attributes">): AttributeFilter | undefined {
  const given = [...(attributes ? [attributes] : []), ...(isEmpty(filter) ? [] : [toAttributeFilter(filter)])];
  return given.length === 0 ? undefined : { type: "and", filters: given };
}

const tooManyScanned = `More than ${MAX_SCANNED_DOCUMENTS} documents would have to be looked at for the filter: name a collection, or a value that they have.`;

function isEmpty(filter: QueryInput["filter"]): filter is undefined {
  return filter === undefined || Object.keys(filter).length === 0;
}

/** Those of the documents that are in one of the collections and fulfil the filter; no others are read. */
async function amongThese(
  { store }: Pick<RagDeps, "store">,
  tenantId: string,
  given: { documentIds: string[]; collections: CollectionNames; wanted: AttributeFilter | undefined },
): Promise<string[]> {
  const { documentIds, collections, wanted } = given;
  if (collections === undefined && wanted === undefined) return documentIds;
  const found = await store.documents.describedBy(tenantId, documentIds);
  const isIn = (document: { collection?: string }) => collections?.includes(collectionOf(document)) ?? true;
  return found.filter((one) => isIn(one) && (!wanted || fulfils(one.metadata, wanted))).map(({ _id }) => _id);
}
