import { type Document, isDocument } from "../bson/bson-types.ts";
import { commandError, notOffered } from "../command-error.ts";
import { compileFilter } from "../query/filter.ts";
import { findRows } from "../query/query.ts";
import { readRow } from "../query/scan.ts";
import type { Collection } from "../storage/collection.ts";
import { attachScore, bestFirst } from "./search-score.ts";
import type { TextIndex } from "./text-index.ts";
import { readSearch, type SearchClauses } from "./text-query.ts";

/**
 * `$search`: words that must be found, and values to filter by. Results come best score first. An index that does not
 * exist gives nothing, as in Atlas. https://www.mongodb.com/docs/atlas/atlas-search/query-syntax/
 */
export function textSearch(collection: Collection | undefined, operand: unknown): IteratorObject<Document> {
  if (!isDocument(operand)) throw commandError("UnknownError", "$search must be a document");
  if (typeof operand.index !== "string") throw notOffered("a $search without an index");
  const index = collection?.searchIndexes.find(({ name }) => name === operand.index);
  if (collection === undefined || index === undefined) return [].values();
  if (index.type !== "search") throw commandError("UnknownError", `index "${index.name}" is not of type search`);
  return runSearch(collection, index.text, readSearch(operand, index.text.definition));
}

function* runSearch(collection: Collection, index: TextIndex, clauses: SearchClauses): Generator<Document> {
  const isAllowed = makeRowTest(collection, clauses.conditions.length > 0 ? { $and: clauses.conditions } : {});
  const hits = Array.from(index.search(clauses), ([rid, score]) => ({ rid, score }));
  for (const { rid, score } of bestFirst(collection, hits)) {
    const document = isAllowed(rid);
    if (document === undefined) continue;
    attachScore(document, "searchScore", score);
    yield document;
  }
}

/** After this many rows that the filter excluded, all matching rows are looked up at once, by an index. */
const patience = 200;

/** Answers the row's document when the filter lets it through. */
function makeRowTest(collection: Collection, filter: Document): (rid: number) => Document | undefined {
  const matches = compileFilter(filter);
  let refused = 0;
  let allowed: Set<number> | undefined;
  return (rid) => {
    if (refused === patience && allowed === undefined) {
      allowed = new Set(findRows(collection, { filter }).map((row) => row.rid));
    }
    if (allowed?.has(rid) === false) return undefined;
    const document = readRow(collection, rid)?.document();
    if (document === undefined || allowed !== undefined || matches(document)) return document;
    refused++;
    return undefined;
  };
}
