import { type Document, isDocument } from "../bson/bson-types.ts";
import { notOffered } from "../command-error.ts";
import { readFields } from "../fields.ts";
import { readConjunction } from "../query/predicates.ts";
import { readRow } from "../query/scan.ts";
import type { Collection } from "../storage/collection.ts";
import { attachScore, bestFirst, refused } from "./search-score.ts";
import { readVector } from "./vector-definition.ts";

const vectorSearchShape = {
  index: "text",
  path: "text",
  queryVector: "any",
  numCandidates: "count",
  limit: "count",
  filter: "document",
} as const;
const MAX_CANDIDATES = 10_000;

/**
 * `$vectorSearch` by Atlas' rules. An index that does not exist gives nothing; a malformed query is an error. All
 * vectors are compared, so `numCandidates` is checked and makes no difference.
 * https://www.mongodb.com/docs/atlas/atlas-vector-search/vector-search-stage/
 */
export function vectorSearch(collection: Collection | undefined, operand: unknown): IteratorObject<Document> {
  if (!isDocument(operand)) throw refused("$vectorSearch must be a document");
  const given = readFields("$vectorSearch", operand, vectorSearchShape);
  const { path, numCandidates = 0, limit = 0, filter = {} } = given;
  if (limit < 1 || limit > numCandidates || numCandidates > MAX_CANDIDATES)
    throw refused(`"limit" must be positive, and "numCandidates" between it and ${MAX_CANDIDATES}`);
  const vector = readVector(given.queryVector);
  if (vector === undefined) throw refused('"queryVector" must be a non-empty array of numbers or a float32 vector');
  const index = collection?.searchIndexes.find(({ name }) => name === given.index);
  if (collection === undefined || index === undefined) return [].values();
  if (index.type !== "vectorSearch") throw refused(`index "${index.name}" is not of type vectorSearch`);
  const { dimensions, filterPaths, path: indexed } = index.vectors.definition;
  if (path !== indexed) throw refused(`${path} is not indexed as vector`);
  if (vector.length !== dimensions) {
    throw refused(`vector field is indexed with ${dimensions} dimensions but queried with ${vector.length}`);
  }
  checkFilter(filter, filterPaths);
  const query = { vector, limit, filter, conjunction: readConjunction(filter) };
  return bestFirst(collection, index.vectors.search(query)).flatMap(({ rid, score }) => {
    const document = readRow(collection, rid)?.document();
    if (document === undefined) return [];
    attachScore(document, "vectorSearchScore", score);
    return [document];
  });
}

/** The filter's own operators are those of any filter; only declared paths may be asked for. */
function checkFilter(filter: Document, paths: readonly string[]): void {
  for (const name of Object.keys(filter)) {
    if (name.startsWith("$")) throw notOffered(`${name} in the filter of $vectorSearch`);
    if (!paths.includes(name)) throw refused(`Path '${name}' needs to be indexed as filter`);
  }
}
