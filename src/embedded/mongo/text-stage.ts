import { bestFirst } from "./best-first.ts";
import { isDocument } from "./bson-types.ts";
import type { Document } from "./codec.ts";
import type { Collection } from "./collection.ts";
import { commandError } from "./command-error.ts";
import { compileFilter } from "./filter.ts";
import { findRows } from "./query.ts";
import { makeRow } from "./scan.ts";
import { attachScore } from "./search-score.ts";
import type { TextIndex } from "./text-index.ts";
import { readSearch, type SearchClauses, type TextClause } from "./text-query.ts";

const defaultIndexName = "default";

/**
 * `$search` with the operators `text`, `equals`, `in`, `range`, `exists` and `compound`. Results come best score first.
 * An index that does not exist gives nothing, as in Atlas.
 * https://www.mongodb.com/docs/atlas/atlas-search/query-syntax/
 */
export function textSearch(collection: Collection | undefined, operand: unknown): IteratorObject<Document> {
  if (!isDocument(operand)) throw commandError("UnknownError", "$search must be a document");
  const name: unknown = operand.index ?? defaultIndexName;
  const index = collection?.searchIndexes.find((candidate) => candidate.name === name);
  if (collection === undefined || index === undefined) return [].values();
  if (index.type !== "search") throw commandError("UnknownError", `index "${index.name}" is not of type search`);
  return runSearch(collection, index.text, readSearch(operand, index.text.definition));
}

function* runSearch(collection: Collection, index: TextIndex, clauses: SearchClauses): Generator<Document> {
  const filter = toFilter(clauses);
  const scores = scoreClauses(index, clauses);
  if (scores === undefined) {
    for (const row of findRows(collection, { filter })) yield scored(row.document(), clauses.constantScore);
    return;
  }
  const isLetThrough = makeRowTest(collection, filter);
  const hits = Array.from(scores, ([rid, score]) => ({ rid, score }));
  for (const { rid, score } of bestFirst(collection, hits)) {
    const document = isLetThrough(rid);
    if (document !== undefined) yield scored(document, score + clauses.constantScore);
  }
}

function scored(document: Document, score: number): Document {
  attachScore(document, "searchScore", score);
  return document;
}

/** Row scores of the text clauses; undefined when no text clause says which rows there are. */
function scoreClauses(index: TextIndex, clauses: SearchClauses): Map<number, number> | undefined {
  const search = (clause: TextClause) => {
    const scores = index.search({ ...clause, partitionValues: clauses.partitionValues });
    if (clause.boost !== 1) for (const [rid, score] of scores) scores.set(rid, score * clause.boost);
    return scores;
  };
  let result: Map<number, number> | undefined;
  for (const clause of clauses.must) result = combine(result, search(clause));
  for (const clause of clauses.filter) {
    const allowed = search(clause);
    result = combine(result, new Map([...allowed.keys()].map((rid) => [rid, 0])));
  }
  const should = clauses.should.map(search);
  if (clauses.needsShould) {
    const any = new Set(should.flatMap((scores) => [...scores.keys()]));
    result = combine(result, new Map([...any].map((rid) => [rid, 0])));
  }
  if (result === undefined) return undefined;
  for (const scores of should) {
    for (const [rid, score] of scores) {
      const before = result.get(rid);
      if (before !== undefined) result.set(rid, before + score);
    }
  }
  for (const clause of clauses.mustNot) for (const rid of search(clause).keys()) result.delete(rid);
  return result;
}

/** Rows that are in both, with the sum of their scores. */
function combine(a: Map<number, number> | undefined, b: Map<number, number>): Map<number, number> {
  if (a === undefined) return b;
  const both = new Map<number, number>();
  for (const [rid, score] of a) {
    const other = b.get(rid);
    if (other !== undefined) both.set(rid, score + other);
  }
  return both;
}

function toFilter(clauses: SearchClauses): Document {
  const parts = [...clauses.conditions, ...clauses.exclusions.map((condition) => ({ $nor: [condition] }))];
  return parts.length === 0 ? {} : { $and: parts };
}

/** After so many rows that the filter refused, all rows that it lets through are looked up at once, by an index. */
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
    const found = collection.byRid.get(rid) as unknown as [Uint8Array] | undefined; // prepared to give arrays
    if (found === undefined) return undefined;
    const document = makeRow(rid, found[0]).document();
    if (allowed !== undefined || matches(document)) return document;
    refused++;
    return undefined;
  };
}
