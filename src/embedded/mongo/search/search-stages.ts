import { type Document, isDocument } from "../bson/bson-types.ts";
import { encodeDocument } from "../bson/codec.ts";
import { commandError, notOffered } from "../command-error.ts";
import { readFields } from "../fields.ts";
import { compileFilter } from "../query/filter.ts";
import type { Score } from "../query/projection.ts";
import { findRows } from "../query/query.ts";
import { type Collection, readRow, type SearchIndex } from "../storage/collection.ts";
import { makeRow, type Row } from "../storage/storage.ts";
import { readVector, type TextDefinition } from "./definitions.ts";
import type { TextIndex, TextQuery } from "./text-index.ts";

/** A document that a search has found, as it is stored. */
export type Found = Pick<Row, "bytes" | "document" | "fields"> & { score?: Score };
/** A stage that brings documents of its own and so stands first in a pipeline. */
type SearchStage = (collection: Collection | undefined, operand: Document) => IteratorObject<Found>;

export const searchStages: Readonly<Record<string, SearchStage>> = {
  $vectorSearch: vectorSearch,
  $search: textSearch,
  $listSearchIndexes: listSearchIndexes,
};

/** Runs a stage of the table. @throws CommandError for a malformed operand, and for what is not offered. */
export function runSearchStage(name: string, collection: Collection | undefined, operand: unknown) {
  if (!isDocument(operand)) throw refused(`${name} must be a document`);
  return searchStages[name]?.(collection, operand) ?? [].values();
}

/** An index is ready as soon as it is made, so all of them are queryable. */
function listSearchIndexes(collection: Collection | undefined, operand: Document): IteratorObject<Found> {
  const indexes = collection?.searchIndexes ?? [];
  return indexes
    .values()
    .filter(({ name }) => operand.name === undefined || operand.name === name)
    .map(({ name, type, definition }) =>
      makeRow(0, encodeDocument({ name, type, queryable: true, latestDefinition: definition })),
    );
}

/** The index of that name; undefined when there is none: a search then finds nothing, as in Atlas. */
function findIndex(collection: Collection, wanted: string, type: SearchIndex["type"]): SearchIndex | undefined {
  const index = collection.searchIndexes.find(({ name }) => name === wanted);
  if (index !== undefined && index.type !== type) throw refused(`index "${wanted}" is not of type ${type}`);
  return index;
}

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
 * `$vectorSearch` by Atlas' rules. All vectors are compared, so `numCandidates` is checked and makes no difference.
 * https://www.mongodb.com/docs/atlas/atlas-vector-search/vector-search-stage/
 */
function vectorSearch(collection: Collection | undefined, operand: Document): IteratorObject<Found> {
  const given = readFields("$vectorSearch", operand, vectorSearchShape);
  const { index: name = "", path, numCandidates = 0, limit = 0, filter = {} } = given;
  if (limit < 1 || limit > numCandidates || numCandidates > MAX_CANDIDATES)
    throw refused(`"limit" must be positive, and "numCandidates" between it and ${MAX_CANDIDATES}`);
  const vector = readVector(given.queryVector);
  if (vector === undefined) throw refused('"queryVector" must be a non-empty array of numbers or a float32 vector');
  const vectors = collection && findIndex(collection, name, "vectorSearch")?.vectors;
  if (collection === undefined || vectors === undefined) return [].values();
  const { dimensions, filterPaths, path: indexed } = vectors.definition;
  if (path !== indexed) throw refused(`${path} is not indexed as vector`);
  if (vector.length !== dimensions)
    throw refused(`vector field is indexed with ${dimensions} dimensions but queried with ${vector.length}`);
  checkFilter(filter, filterPaths);
  return bestFirst(collection, vectors.search({ vector, limit, filter })).flatMap(({ rid, score }) => {
    const row = readRow(collection, rid);
    return row === undefined ? [] : [{ ...row, score: { name: "vectorSearchScore", value: score } as const }];
  });
}

/** The filter's own operators are those of any filter; only declared paths may be asked for. */
function checkFilter(filter: Document, paths: readonly string[]): void {
  for (const name of Object.keys(filter)) {
    if (name.startsWith("$")) throw notOffered(`${name} in the filter of $vectorSearch`);
    if (!paths.includes(name)) throw refused(`Path '${name}' needs to be indexed as filter`);
  }
}

/** `$search`: words, and values to filter by. https://www.mongodb.com/docs/atlas/atlas-search/query-syntax/ */
function textSearch(collection: Collection | undefined, operand: Document): IteratorObject<Found> {
  const { index, compound = {} } = readFields("$search", operand, { index: "text", compound: "document" });
  if (index === undefined) throw notOffered("a $search without an index");
  const text = collection && findIndex(collection, index, "search")?.text;
  if (collection === undefined || text === undefined) return [].values();
  return runTextSearch(collection, text, readSearch(compound, text.definition));
}

function* runTextSearch(collection: Collection, index: TextIndex, clauses: SearchClauses): Generator<Found> {
  const findAllowed = makeRowTest(collection, clauses.conditions.length > 0 ? { $and: clauses.conditions } : {});
  const hits = Array.from(index.search(clauses), ([rid, score]) => ({ rid, score }));
  for (const { rid, score } of bestFirst(collection, hits)) {
    const row = findAllowed(rid);
    if (row !== undefined) yield { ...row, score: { name: "searchScore", value: score } };
  }
}

/** After this many rows that the filter excluded, all matching rows are looked up at once, by an index, unless they are many. */
const patience = 200;
const mostAllowed = 20_000;

/** Reads the row when the filter lets it through. */
function makeRowTest(collection: Collection, filter: Document): (rid: number) => Row | undefined {
  const matches = compileFilter(filter);
  let excluded = 0;
  let allowed: Set<number> | undefined;
  return (rid) => {
    if (excluded === patience) {
      excluded++;
      const rids = new Set(findRows(collection, { filter, limit: mostAllowed }).map((row) => row.rid));
      if (rids.size < mostAllowed) allowed = rids;
    }
    if (allowed?.has(rid) === false) return undefined;
    const row = readRow(collection, rid);
    if (row === undefined || allowed !== undefined || matches(row.document())) return row;
    excluded++;
    return undefined;
  };
}

/** A `$search` taken apart: words that score, and a filter of values as a query has it. */
type SearchClauses = TextQuery & { conditions: Document[] };

/** What a `$search` consists of: every clause must match, those of `must` score. What is not here is refused. */
export const searchClauses = ["must", "filter"] as const;
export const searchOperators = ["text", "equals", "in"] as const;

/** Reads a `compound`. @throws CommandError 238, 40415 for what is not offered, 8 for malformed or unknown paths. */
function readSearch(compound: Document, definition: TextDefinition): SearchClauses {
  const clauses = readFields("$search", compound, { must: "any", filter: "any" } satisfies Record<ClauseName, "any">);
  const [text, ...others] = listOf(clauses.must).map((clause) => readClause("must", clause));
  if (text === undefined) throw notOffered("a $search without words");
  if (others.length > 0) throw notOffered("several texts in compound.must of $search");
  const filters = listOf(clauses.filter).map((clause) => readClause("filter", clause));
  const conditions = filters.map(({ name, operand }) => readValues(name, operand, definition.filterPaths));
  const ofPartition = conditions.find(({ path }) => path === definition.partitionPath);
  return {
    ...readText(text.operand, definition),
    conditions: conditions.map(({ path, values }) => ({ [path]: { $in: values } })),
    partitionValues: ofPartition?.values,
  };
}

type ClauseName = (typeof searchClauses)[number];

const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value === undefined ? [] : [value];

/** The one operator of a clause: `text` scores and stands in `must`, the others filter. */
function readClause(place: ClauseName, clause: unknown) {
  const [[name, operand] = [], ...more] = isDocument(clause) ? Object.entries(clause) : [];
  if (name === undefined || more.length > 0) throw refused(`each clause of "${place}" needs exactly one operator`);
  const operator = searchOperators.find((known) => known === name);
  if (operator === undefined || (operator === "text") !== (place === "must"))
    throw notOffered(`${name} in compound.${place} of $search`);
  if (!isDocument(operand)) throw refused(`"${name}" must be a document`);
  return { name: operator, operand };
}

function readText(operand: Document, { textPaths }: TextDefinition): Pick<SearchClauses, "text" | "paths"> {
  const { query, path } = readFields("text of $search", operand, { query: "any", path: "any" });
  const [texts, paths] = [listOf(query), listOf(path)];
  const bad = paths.find((asked) => !textPaths.some((known) => known === asked));
  if (bad !== undefined || paths.length === 0) throw refused(`"${bad}" is not indexed as string`);
  if (texts.length === 0 || !texts.every((text) => typeof text === "string"))
    throw refused('"text.query" must be a string or a non-empty array of strings');
  return { text: texts.join(" "), paths: paths.map(String) };
}

function readValues(name: string, operand: Document, filterPaths: readonly string[]) {
  const { path = "", value } = readFields(`${name} of $search`, operand, { path: "text", value: "any" });
  if (!filterPaths.includes(path)) throw refused(`"${path}" is not indexed as token or boolean`);
  if (value === undefined) throw refused(`"${name}.value" is required`);
  return { path, values: name === "in" ? listOf(value) : [value] };
}

/** Best score first, equal ones by their `_id`: an answer follows from the documents, and not from when they came. */
function* bestFirst<T extends { rid: number; score: number }>(
  collection: Collection,
  hits: readonly T[],
): Generator<T> {
  const ranked = hits.toSorted((a, b) => b.score - a.score);
  for (let from = 0, to = 0; from < ranked.length; from = to) {
    const score = ranked[from]?.score;
    while (to < ranked.length && ranked[to]?.score === score) to++;
    const equal = ranked.slice(from, to);
    yield* equal.length === 1 ? equal : sortById(collection, equal);
  }
}

function sortById<T extends { rid: number }>(collection: Collection, hits: readonly T[]): T[] {
  return hits
    .flatMap((hit) => {
      const found = collection.idOf.get(hit.rid) as unknown as [Uint8Array] | undefined; // prepared to give arrays
      return found === undefined ? [] : [{ hit, id: found[0] }];
    })
    .sort((a, b) => Buffer.compare(a.id, b.id))
    .map(({ hit }) => hit);
}

/** Atlas' error for a search that it cannot run. */
function refused(message: string) {
  return commandError("UnknownError", `PlanExecutor error during aggregation :: caused by :: ${message}`);
}
