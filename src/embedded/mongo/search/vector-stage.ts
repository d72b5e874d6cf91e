import { type Document, isDocument } from "../bson/bson-types.ts";
import { commandError, notOffered } from "../command-error.ts";
import { toNumber } from "../commands/command.ts";
import { readConjunction } from "../query/predicates.ts";
import { readRow } from "../query/scan.ts";
import type { Collection } from "../storage/collection.ts";
import { attachScore, bestFirst } from "./search-score.ts";
import { readVector } from "./vector-definition.ts";

const options: ReadonlySet<string> = new Set(["index", "path", "queryVector", "numCandidates", "limit", "filter"]);
const maxCandidates = 10_000;

/**
 * `$vectorSearch` by Atlas' rules. An index that does not exist gives nothing; a malformed query is an error. All
 * vectors are compared, so `numCandidates` is checked and makes no difference.
 * https://www.mongodb.com/docs/atlas/atlas-vector-search/vector-search-stage/
 */
export function vectorSearch(collection: Collection | undefined, operand: unknown): IteratorObject<Document> {
  if (!isDocument(operand)) throw refused("$vectorSearch must be a document");
  const stranger = Object.keys(operand).find((option) => !options.has(option));
  if (stranger !== undefined) throw notOffered(`the option ${stranger} of $vectorSearch`);
  const { index: name, path, filter } = operand;
  if (typeof name !== "string") throw refused('"index" is required');
  if (typeof path !== "string") throw refused('"path" is required');
  const limit = readLimit(operand);
  const vector = readVector(operand.queryVector);
  if (vector === undefined) throw refused('"queryVector" must be a non-empty array of numbers or a float32 vector');
  if (filter !== undefined && !isDocument(filter)) throw refused('"filter" must be a document');
  const index = collection?.searchIndexes.find((candidate) => candidate.name === name);
  if (collection === undefined || index === undefined) return [].values();
  if (index.type !== "vectorSearch") throw refused(`index "${index.name}" is not of type vectorSearch`);
  const { dimensions, filterPaths, path: indexed } = index.vectors.definition;
  if (path !== indexed) throw refused(`${path} is not indexed as vector`);
  if (vector.length !== dimensions) {
    throw refused(`vector field is indexed with ${dimensions} dimensions but queried with ${vector.length}`);
  }
  checkFilter(filter ?? {}, filterPaths);
  const query = { vector, limit, filter: filter ?? {}, conjunction: readConjunction(filter ?? {}) };
  return bestFirst(collection, index.vectors.search(query)).flatMap(({ rid, score }) => {
    const document = readRow(collection, rid)?.document();
    if (document === undefined) return [];
    attachScore(document, "vectorSearchScore", score);
    return [document];
  });
}

function readLimit(operand: Document): number {
  const limit = toNumber(operand.limit);
  if (limit === undefined || !Number.isInteger(limit) || limit < 1) throw refused('"limit" must be a positive integer');
  const candidates = toNumber(operand.numCandidates);
  if (candidates === undefined) throw refused('"numCandidates" is required');
  if (!Number.isInteger(candidates) || candidates < 1 || candidates > maxCandidates) {
    throw refused(`"numCandidates" must be within bounds [1, ${maxCandidates}]`);
  }
  if (limit > candidates) throw refused('"limit" must be less than or equal to "numCandidates"');
  return limit;
}

/** The filter's own operators are those of any filter; only declared paths may be asked for. */
function checkFilter(filter: Document, paths: readonly string[]): void {
  for (const name of Object.keys(filter)) {
    if (name.startsWith("$")) throw notOffered(`${name} in the filter of $vectorSearch`);
    if (!paths.includes(name)) throw refused(`Path '${name}' needs to be indexed as filter`);
  }
}

function refused(message: string) {
  return commandError("UnknownError", `PlanExecutor error during aggregation :: caused by :: ${message}`);
}
