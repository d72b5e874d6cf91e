import { isDocument } from "../bson-types.ts";
import { type Document, encodeDocument } from "../codec.ts";
import type { Collection } from "../collection.ts";
import {
  type CommandContext,
  type CommandFamily,
  checkCollation,
  collectionName,
  readCount,
  readDeadline,
  readDocument,
  readSort,
  toNumber,
} from "../command.ts";
import { CommandError, notImplemented } from "../command-error.ts";
import { type Cursors, defaultBatchSize } from "../cursors.ts";
import { runPipeline, validatePipeline } from "../pipeline.ts";
import type { PipelineContext } from "../pipeline-stage.ts";
import { countRows, findRows, type Query } from "../query.ts";
import { failedToParse, typeMismatch } from "../refusals.ts";
import { searchStages } from "../search-stages.ts";

const fields = [
  "pipeline",
  "explain",
  "allowDiskUse",
  "cursor",
  "bypassDocumentValidation",
  "hint",
  "collation",
  "let",
]; // prettier-ignore

export const aggregateCommands: CommandFamily = { aggregate: { fields, run: aggregate } };

function aggregate(context: CommandContext, body: Document): Document {
  if (body.explain !== undefined) throw notImplemented("The option explain of aggregate");
  if (body.let !== undefined) throw notImplemented("The option let of aggregate");
  if (body.cursor === undefined) {
    throw failedToParse("The 'cursor' option is required, except for aggregate with the explain argument");
  }
  checkCollation(body);
  if (typeof body.aggregate !== "string") throw notImplemented("aggregate without a collection");
  const name = collectionName(context, "aggregate", body.aggregate);
  const stages = readPipeline(body);
  const collection = context.engine.catalog.find(context.db, name);
  const results = runStages(context, collection, stages, body);
  const batchSize = readCount(readDocument(body, "cursor"), "batchSize") ?? defaultBatchSize;
  const opened: Parameters<Cursors["open"]>[0] = {
    namespace: `${context.db}.${name}`,
    results,
    batchSize,
    isSingleBatch: false,
  };
  return { cursor: context.engine.cursors.open(opened) };
}

export function readPipeline(body: Document): Document[] {
  const stages: unknown = body.pipeline;
  if (!Array.isArray(stages)) throw typeMismatch("'pipeline' option must be specified as an array");
  for (const stage of stages) {
    if (!isDocument(stage)) throw typeMismatch("Each element of the 'pipeline' array must be an object");
    if (Object.keys(stage).length !== 1) {
      throw new CommandError(
        40323,
        "Location40323",
        "A pipeline stage specification object must contain exactly one field.",
      );
    }
  }
  return stages;
}

function runStages(
  context: CommandContext,
  collection: Collection | undefined,
  stages: Document[],
  body: Document,
): Iterator<Uint8Array> {
  const pipelineContext = makePipelineContext(context);
  const [first, ...others] = stages;
  const source = first === undefined ? undefined : searchStages[Object.keys(first)[0] ?? ""];
  if (source !== undefined && first !== undefined) {
    validatePipeline(others);
    const { skip, limit, rest } = takeWindow(others);
    const found = source(collection, Object.values(first)[0]);
    const window = limit === undefined ? found.drop(skip) : found.drop(skip).take(limit);
    return encodeAll(rest.length === 0 ? window : runPipeline(rest, window, pipelineContext));
  }
  const { query, rest } = splitPipeline(stages);
  validatePipeline(rest);
  const wanted: Query = { ...query, hint: body.hint, deadline: readDeadline(body) };
  const toCount = soleCount(rest);
  if (toCount !== undefined) {
    const count = countRows(collection, wanted);
    return (count === 0 ? [] : [encodeDocument(toCount(count))]).values();
  }
  const rows = findRows(collection, wanted);
  if (rest.length === 0) return rows.map((row) => row.bytes);
  return encodeAll(
    runPipeline(
      rest,
      rows.map((row) => row.document()),
      pipelineContext,
    ),
  );
}

function makePipelineContext(context: CommandContext): PipelineContext {
  return {
    find: (name, filter) =>
      findRows(context.engine.catalog.find(context.db, name), { filter }).map((row) => row.document()),
  };
}

function encodeAll(documents: Iterable<Document>): Iterator<Uint8Array> {
  return Iterator.from(documents).map(encodeDocument);
}

/** Leading `$skip` and `$limit` after a search: the search then makes no more documents than are wanted. */
function takeWindow(stages: readonly Document[]): { skip: number; limit: number | undefined; rest: Document[] } {
  const [first, second] = stages;
  const skip = toNumber(first?.$skip);
  const limit = toNumber((skip === undefined ? first : second)?.$limit);
  const used = (skip === undefined ? 0 : 1) + (limit === undefined ? 0 : 1);
  return { skip: skip ?? 0, limit, rest: stages.slice(used) };
}

/**
 * The leading stages that an index can serve, as a query: `$match`es, then `$sort`, `$skip` and `$limit` in this order.
 * They are the same as in a find, so they are checked here as there.
 */
export function splitPipeline(stages: readonly Document[]): { query: Query; rest: Document[] } {
  let at = 0;
  const filters: Document[] = [];
  for (; stages[at]?.$match !== undefined; at++) filters.push(readDocument(stages[at] ?? {}, "$match"));
  const query: Query = {
    filter: filters.length === 1 ? (filters[0] ?? {}) : filters.length === 0 ? {} : { $and: filters },
  };
  const sort: unknown = stages[at]?.$sort;
  if (sort !== undefined && isPlainSort(sort)) {
    query.sort = readSort(sort);
    at++;
  }
  const skip = toNumber(stages[at]?.$skip);
  if (skip !== undefined && skip >= 0 && Number.isInteger(skip)) {
    query.skip = skip;
    at++;
  }
  const limit = toNumber(stages[at]?.$limit);
  if (limit !== undefined && limit > 0 && Number.isInteger(limit)) {
    query.limit = limit;
    at++;
  }
  return { query, rest: stages.slice(at) };
}

function isPlainSort(sort: unknown): boolean {
  if (!isDocument(sort))
    throw new CommandError(15973, "Location15973", "the $sort key specification must be an object");
  const directions = Object.values(sort);
  if (directions.length === 0) {
    throw new CommandError(15976, "Location15976", "$sort stage must have at least one sort key");
  }
  return directions.every((direction) => !isDocument(direction));
}

/** The field of `$count`, or of the `$group` that drivers send for countDocuments: rows are counted, not read. */
function soleCount(rest: readonly Document[]): ((count: number) => Document) | undefined {
  const [stage] = rest;
  if (stage === undefined || rest.length !== 1) return undefined;
  const name: unknown = stage.$count;
  if (typeof name === "string") return (count) => ({ [name]: count });
  const group: unknown = stage.$group;
  if (!isDocument(group) || Object.keys(group).join() !== "_id,n") return undefined;
  const isConstant = group._id === null || group._id === 1;
  const isSum = isDocument(group.n) && Object.keys(group.n).join() === "$sum" && group.n.$sum === 1;
  return isConstant && isSum ? (count) => ({ _id: group._id, n: count }) : undefined;
}
