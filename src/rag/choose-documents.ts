import { invalidRequest } from "../errors.ts";
import type { RagDeps } from "./deps.ts";
import { type QueryInput, tagsOf } from "./schemas.ts";

const MAX_FILTERED_DOCUMENTS = 5_000; // a filter that matches more is rejected

/**
 * Returns the documents that a query is limited to, or undefined if it is not limited.
 * @throws AppError `invalid_request` when too many documents match the filter.
 */
export async function chooseDocuments(
  { store }: Pick<RagDeps, "store">,
  tenantId: string,
  { documentIds, filter }: Pick<QueryInput, "documentIds" | "filter">,
): Promise<string[] | undefined> {
  if (!filter || Object.keys(filter).length === 0) return documentIds;
  const groups = Object.entries(filter).map(([key, value]) => [value].flat().flatMap((one) => tagsOf({ [key]: one })));
  const found = await store.documents.idsByTags(tenantId, groups, MAX_FILTERED_DOCUMENTS + 1);
  if (found.length > MAX_FILTERED_DOCUMENTS) {
    throw invalidRequest("filter", `More than ${MAX_FILTERED_DOCUMENTS} documents match the filter.`);
  }
  const wanted = documentIds && new Set(documentIds);
  return wanted ? found.filter((id) => wanted.has(id)) : found;
}
