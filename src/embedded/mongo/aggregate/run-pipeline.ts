import { isDeepStrictEqual } from "node:util";
import { type Document, isDocument } from "../bson/bson-types.ts";
import { encodeDocument } from "../bson/codec.ts";
import { compileFilter, fieldsOf } from "../query/filter.ts";
import { indexedValues } from "../query/indexed-values.ts";
import { attachScore, compileProjection } from "../query/projection.ts";
import { countRows, findRows, type Query } from "../query/query.ts";
import { type Found, runSearchStage, searchStages } from "../search/search-stages.ts";
import type { Collection } from "../storage/collection.ts";
import { joinStages, runJoins } from "./joins.ts";
import { compilePipeline, type NamedStage } from "./pipeline.ts";

/** The collection of that name in the same database. */
type FindCollection = (name: string) => Collection | undefined;

/**
 * The documents that an aggregation of a collection gives, in BSON. What its first stages ask for is found by an index, and
 * what other collections bring at its end is added to it.
 * @throws CommandError as `compilePipeline` and the stages' own.
 */
export function runPipeline(
  collection: Collection | undefined,
  stages: readonly NamedStage[],
  find: FindCollection,
): IteratorObject<Uint8Array> {
  const first = stages.findIndex(([name]) => Object.hasOwn(joinStages, name));
  if (first === -1) return runStages(collection, stages);
  const joins = stages.slice(first);
  const isLazy = joins.some(([name]) => name === "$limit");
  return runJoins(runStages(collection, stages.slice(0, first), { isLazy }), joins, {
    all: (other, pipeline) => runPipeline(find(other), pipeline, find),
    matching: (other, pipeline) => {
      const run = compileStages(pipeline);
      return (filter) => run(findRows(find(other), { filter }));
    },
  });
}

/** What stages give that read no other collection. A search reads all at once, as it is now; if `isLazy`, a `$limit` does. */
function runStages(
  collection: Collection | undefined,
  stages: readonly NamedStage[],
  { isLazy = false } = {},
): IteratorObject<Uint8Array> {
  const [first, ...others] = stages;
  if (first !== undefined && Object.hasOwn(searchStages, first[0])) {
    const found = compileStages(others)(runSearchStage(first[0], collection, first[1]));
    return isLazy ? found : [...found].values();
  }
  const { query, rest } = splitPipeline(stages);
  const run = compileStages(rest);
  if (isCount(rest)) {
    const n = countRows(collection, query);
    return encodeAll(n === 0 ? [] : [{ _id: 1, n }]);
  }
  const values = query.limit === undefined ? valuesOf(collection, query.filter, rest) : undefined;
  return values ? encodeAll(values.map((value) => ({ _id: value }))) : run(findRows(collection, query));
}

/** What stages make of documents. Mostly they are one `$project`, with a `$match` before it or none, or there are none. */
function compileStages(stages: readonly NamedStage[]): (found: IteratorObject<Found>) => IteratorObject<Uint8Array> {
  if (stages.length === 0) return (found) => found.map(({ bytes }) => bytes);
  const [[name, operand] = [], ...others] = stages;
  if (name === "$match" && isDocument(operand) && others.length > 0) {
    const [matches, run] = [compileFilter(operand), compileStages(others)];
    const read = new Set(fieldsOf(operand));
    return (found) => run(found.filter(({ fields }) => matches(fields(read))));
  }
  const isOne = name === "$project" && isDocument(operand) && others.length === 0;
  const pick = isOne ? compileProjection(operand).ofBytes : undefined;
  if (pick) return (found) => found.map(({ bytes, score }) => pick(bytes, score));
  const run = compilePipeline(stages);
  return (found) =>
    encodeAll(run(found.map(({ document, score }) => (score ? attachScore(document(), score) : document()))));
}

/** All at once: none is encoded before all stages have succeeded. */
function encodeAll(documents: Iterable<Document>): IteratorObject<Uint8Array> {
  return [...documents].values().map(encodeDocument);
}

/** The leading stages that an index can serve, as the query of a find: a `$match`, and a `$limit` behind it. */
function splitPipeline(stages: readonly NamedStage[]): { query: Query; rest: readonly NamedStage[] } {
  const [[first, filter] = [], [second, limit] = []] = stages;
  if (first !== "$match" || !isDocument(filter)) return { query: { filter: {} }, rest: stages };
  const isLimited = second === "$limit" && typeof limit === "number" && Number.isInteger(limit) && limit > 0;
  return isLimited ? { query: { filter, limit }, rest: stages.slice(2) } : { query: { filter }, rest: stages.slice(1) };
}

/** The `$group` that drivers send for countDocuments: the rows are then counted, not read. */
const countGroup = { _id: 1, n: { $sum: 1 } };

function isCount([stage, ...others]: readonly NamedStage[]): boolean {
  return others.length === 0 && stage?.[0] === "$group" && isDeepStrictEqual(stage[1], countGroup);
}

/** The values of a `$group` by a field alone, and of a `$limit` behind it, where an index has them in order; else undefined. */
function valuesOf(collection: Collection | undefined, filter: Document, stages: readonly NamedStage[]) {
  const [[first, group] = [], [second, limit] = ["$limit", Number.POSITIVE_INFINITY], ...others] = stages;
  if (first !== "$group" || second !== "$limit" || typeof limit !== "number" || others.length > 0) return undefined;
  const by = isDocument(group) && Object.keys(group).length === 1 ? group._id : undefined;
  if (typeof by !== "string" || !by.startsWith("$")) return undefined;
  return indexedValues(collection, { path: by.slice(1), filter, limit });
}
