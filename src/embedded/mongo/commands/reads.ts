import { readStage } from "../aggregate/pipeline.ts";
import { runPipeline } from "../aggregate/run-pipeline.ts";
import { type Document, isDocument } from "../bson/bson-types.ts";
import { encodeDocument } from "../bson/codec.ts";
import { readSort } from "../bson/order.ts";
import { failedToParse, notOffered, typeMismatch } from "../command-error.ts";
import { type Fields, readFields } from "../fields.ts";
import { compileProjection } from "../query/projection.ts";
import { findRows } from "../query/query.ts";
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
const getMoreShape = { collection: "text", batchSize: "count" } as const;
const killCursorsShape = { cursors: "array" } as const;

export const readCommands: CommandFamily = {
  find: defineCommand("find", findShape, find),
  aggregate: defineCommand("aggregate", aggregateShape, aggregate),
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
  const { catalog, cursors, storage } = context.engine;
  const find = (name: string) => catalog.find(context.db, name);
  const namespace = `${context.db}.${collectionName(context)}`;
  return storage.reading(() => {
    const results = runPipeline(findCollection(context), pipeline.map(readStage), find);
    return { cursor: cursors.open({ namespace, results, ...readFields("cursor", cursor, cursorShape) }) };
  });
}
