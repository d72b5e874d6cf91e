import { compilePipeline, readSortStage, readStage } from "../aggregate/pipeline.ts";
import { type Document, isDocument } from "../bson/bson-types.ts";
import { encodeDocument } from "../bson/codec.ts";
import { failedToParse, notOffered, typeMismatch } from "../command-error.ts";
import { countRows, findRows, type Query } from "../query/query.ts";
import { searchStages } from "../search/search-stages.ts";
import type { Collection } from "../storage/collection.ts";
import { defaultBatchSize } from "../wire/cursors.ts";
import {
  type CommandContext,
  type CommandFamily,
  collectionName,
  readCount,
  readDocument,
  toNumber,
} from "./command.ts";

export const aggregateCommands: CommandFamily = { aggregate: { fields: ["pipeline", "cursor"], run: aggregate } };

function aggregate(context: CommandContext, body: Document): Document {
  if (body.cursor === undefined) {
    throw failedToParse("The 'cursor' option is required, except for aggregate with the explain argument");
  }
  if (typeof body.aggregate !== "string") throw notOffered("aggregate without a collection");
  const name = collectionName(context, "aggregate", body.aggregate);
  const stages = readPipeline(body);
  const results = runStages(context.engine.catalog.find(context.db, name), stages);
  const batchSize = readCount(readDocument(body, "cursor"), "batchSize") ?? defaultBatchSize;
  const namespace = `${context.db}.${name}`;
  return { cursor: context.engine.cursors.open({ namespace, results, batchSize, isSingleBatch: false }) };
}

export function readPipeline(body: Document): Document[] {
  const stages: unknown = body.pipeline;
  if (!Array.isArray(stages)) throw typeMismatch("'pipeline' option must be specified as an array");
  for (const stage of stages) readStage(stage);
  return stages;
}

function runStages(collection: Collection | undefined, stages: readonly Document[]): Iterator<Uint8Array> {
  const [first, ...others] = stages;
  const [name, operand] = first === undefined ? [""] : readStage(first);
  const search = Object.hasOwn(searchStages, name) ? searchStages[name] : undefined;
  if (search !== undefined) {
    const run = compilePipeline(others);
    return encodeAll(run(search(collection, operand)));
  }
  const { query, rest } = splitPipeline(stages);
  const run = compilePipeline(rest);
  const toCount = soleCount(rest);
  if (toCount !== undefined) {
    const count = countRows(collection, query);
    return (count === 0 ? [] : [encodeDocument(toCount(count))]).values();
  }
  const rows = findRows(collection, query);
  if (rest.length === 0) return rows.map((row) => row.bytes);
  return encodeAll(run(rows.map((row) => row.document())));
}

/** All at once: a search's documents are those of the moment, and none is encoded before all stages have succeeded. */
function encodeAll(documents: Iterable<Document>): Iterator<Uint8Array> {
  return [...documents].values().map(encodeDocument);
}

/**
 * The leading stages that an index can serve, as a query: `$match`es, then `$sort` and `$limit` in this order. They are
 * the same as in a find, so they are checked here as there.
 */
export function splitPipeline(stages: readonly Document[]): { query: Query; rest: Document[] } {
  let at = 0;
  const filters: Document[] = [];
  for (; stages[at]?.$match !== undefined; at++) filters.push(readDocument(stages[at] ?? {}, "$match"));
  const query: Query = {
    filter: filters.length === 1 ? (filters[0] ?? {}) : filters.length === 0 ? {} : { $and: filters },
  };
  const sort: unknown = stages[at]?.$sort;
  if (sort !== undefined) {
    query.sort = readSortStage(sort);
    at++;
  }
  const limit = toNumber(stages[at]?.$limit);
  if (limit !== undefined && limit > 0 && Number.isInteger(limit)) {
    query.limit = limit;
    at++;
  }
  return { query, rest: stages.slice(at) };
}

/** The field of the `$group` that drivers send for countDocuments: rows are counted, not read. */
function soleCount(rest: readonly Document[]): ((count: number) => Document) | undefined {
  const [stage] = rest;
  const group: unknown = rest.length === 1 ? stage?.$group : undefined;
  if (!isDocument(group) || Object.keys(group).join() !== "_id,n") return undefined;
  const isConstant = group._id === null || group._id === 1;
  const isSum = isDocument(group.n) && Object.keys(group.n).join() === "$sum" && group.n.$sum === 1;
  return isConstant && isSum ? (count) => ({ _id: group._id, n: count }) : undefined;
}
