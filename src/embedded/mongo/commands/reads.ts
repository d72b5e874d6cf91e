import { isDeepStrictEqual } from "node:util";
import { compilePipeline, readStage } from "../aggregate/pipeline.ts";
import { type Document, isDocument } from "../bson/bson-types.ts";
import { encodeDocument } from "../bson/codec.ts";
import { readSort } from "../bson/order.ts";
import { failedToParse, notOffered, typeMismatch } from "../command-error.ts";
import { type Fields, readFields } from "../fields.ts";
import { distinctValues } from "../query/distinct.ts";
import { attachScore, compileProjection } from "../query/projection.ts";
import { countRows, findRows, type Query } from "../query/query.ts";
import { type Found, runSearchStage, searchStages } from "../search/search-stages.ts";
import type { Collection } from "../storage/collection.ts";
import { type CommandContext, type CommandFamily, collectionName, defineCommand, findCollection } from "./command.ts";

const findShape = {
  filter: "document",
  sort: "any",
  projection: "document",
  limit: "count",
  batchSize: "count",
  singleBatch: "flag",
} as const;
const aggregateShape = { pipeline: "array", cursor: "document" } as const;
const cursorShape = { batchSize: "count" } as const;
const distinctShape = { key: "text", query: "document" } as const;
const getMoreShape = { collection: "text", batchSize: "count" } as const;
const killCursorsShape = { cursors: "array" } as const;

export const readCommands: CommandFamily = {
  find: defineCommand("find", findShape, find),
  aggregate: defineCommand("aggregate", aggregateShape, aggregate),
  distinct: defineCommand("distinct", distinctShape, distinct),
  getMore: defineCommand("getMore", getMoreShape, getMore),
  killCursors: defineCommand("killCursors", killCursorsShape, killCursors),
};

function find(context: CommandContext, fields: Fields<typeof findShape>): Document {
  const { filter = {}, projection = {}, limit, batchSize, singleBatch: isSingleBatch } = fields;
  const isProjected = Object.keys(projection).length > 0;
  const project = isProjected ? compileProjection(projection) : undefined;
  const names = isProjected ? fieldsOf(projection) : undefined;
  const rows = findRows(findCollection(context), { filter, sort: readSort(fields.sort), limit, fields: names });
  const results = rows.map((row) => {
    if (!project) return row.bytes;
    return (
      project.ofBytes?.(row.bytes) ?? encodeDocument(project.ofDocument(names ? row.fields(names) : row.document()))
    );
  });
  const namespace = `${context.db}.${collectionName(context)}`;
  return { cursor: context.engine.cursors.open({ namespace, results, batchSize, isSingleBatch }) };
}

/** The fields that a projection reads; undefined where it keeps all of them, beside a search's scores. */
function fieldsOf(projection: Document): ReadonlySet<string> | undefined {
  const paths = Object.entries(projection);
  if (paths.some(([, value]) => isDocument(value))) return undefined;
  return new Set(["_id", ...paths.map(([path]) => path.split(".", 1)[0] ?? "")]);
}

function distinct(context: CommandContext, { key = "", query = {} }: Fields<typeof distinctShape>): Document {
  return { values: distinctValues(findCollection(context), key, query) };
}

function getMore(context: CommandContext, { collection, batchSize }: Fields<typeof getMoreShape>): Document {
  const namespace = `${context.db}.${collectionName(context, collection)}`;
  return { cursor: context.engine.cursors.next(readCursorId(context.target), namespace, batchSize) };
}

function killCursors(context: CommandContext, { cursors = [] }: Fields<typeof killCursorsShape>): Document {
  return { cursorsKilled: cursors.map(readCursorId).filter((id) => context.engine.cursors.kill(id)) };
}

function readCursorId(value: unknown): number {
  if (typeof value === "number") return value;
  throw typeMismatch("the id of a cursor is of the wrong type, expected type 'long'");
}

function aggregate(context: CommandContext, { pipeline, cursor }: Fields<typeof aggregateShape>): Document {
  if (cursor === undefined) throw failedToParse("The 'cursor' option is required");
  if (pipeline === undefined) throw typeMismatch("'pipeline' option must be specified as an array");
  if (typeof context.target === "number") throw notOffered("aggregate without a collection");
  const results = runStages(findCollection(context), pipeline.map(readStage));
  const namespace = `${context.db}.${collectionName(context)}`;
  return { cursor: context.engine.cursors.open({ namespace, results, ...readFields("cursor", cursor, cursorShape) }) };
}

type NamedStage = readonly [name: string, operand: unknown];

function runStages(collection: Collection | undefined, stages: readonly NamedStage[]): IteratorObject<Uint8Array> {
  const [first, ...others] = stages;
  if (first !== undefined && Object.hasOwn(searchStages, first[0]))
    return compileAfterSearch(others)(runSearchStage(first[0], collection, first[1]));
  const { query, rest } = splitPipeline(stages);
  const run = compilePipeline(rest);
  if (isCount(rest)) {
    const n = countRows(collection, query);
    return encodeAll(n === 0 ? [] : [{ _id: 1, n }]);
  }
  const rows = findRows(collection, query);
  return rest.length === 0 ? rows.map((row) => row.bytes) : encodeAll(run(rows.map((row) => row.document())));
}

/** What stages make of the documents that a search found. Mostly they are one `$project`, for which nothing is decoded. */
function compileAfterSearch(
  stages: readonly NamedStage[],
): (found: IteratorObject<Found>) => IteratorObject<Uint8Array> {
  const [[name, operand] = [], ...others] = stages;
  const isOne = name === "$project" && isDocument(operand) && others.length === 0;
  const pick = isOne ? compileProjection(operand).ofBytes : undefined;
  if (pick) return (found) => [...found.map(({ bytes, score }) => pick(bytes, score))].values();
  const run = compilePipeline(stages);
  return (found) =>
    encodeAll(run(found.map(({ document, score }) => (score ? attachScore(document(), score) : document()))));
}

/** All at once: a search's documents are those of the moment, and none is encoded before all stages have succeeded. */
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
