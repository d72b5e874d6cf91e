import { Long } from "bson";
import type { Document } from "../bson/bson-types.ts";
import { encodeDocument } from "../bson/codec.ts";
import { readSort } from "../bson/compare.ts";
import { commandError, typeMismatch } from "../command-error.ts";
import { compileProjection } from "../query/projection.ts";
import { findRows, type Query } from "../query/query.ts";
import type { Row } from "../storage/documents.ts";
import { defaultBatchSize } from "../wire/cursors.ts";
import {
  type CommandContext,
  type CommandFamily,
  collectionName,
  findCollection,
  readBoolean,
  readCount,
  readDocument,
  toNumber,
} from "./command.ts";

const findFields = ["filter", "sort", "projection", "limit", "batchSize", "singleBatch"];

/** find, getMore and killCursors. */
export const findCommands: CommandFamily = {
  find: { fields: findFields, run: find },
  getMore: { fields: ["collection", "batchSize"], run: getMore },
  killCursors: { fields: ["cursors"], run: killCursors },
};

function find(context: CommandContext, body: Document): Document {
  const collection = findCollection(context, "find", body.find);
  const { query, isSingleBatch, batchSize } = readFind(body);
  const project = readProjection(body);
  const rows = findRows(collection, query);
  const results = project === undefined ? bytesOf(rows) : projected(rows, project);
  const namespace = `${context.db}.${collectionName(context, "find", body.find)}`;
  return { cursor: context.engine.cursors.open({ namespace, results, batchSize, isSingleBatch }) };
}

/** What of a find's body says which documents are wanted; used by explain too. */
export function readFind(body: Document): { query: Query; isSingleBatch: boolean; batchSize: number } {
  const filter = readDocument(body, "filter");
  const limit = toNumber(body.limit) ?? 0;
  if (limit < 0) throw commandError("BadValue", `BSON field 'limit' value must be >= 0, actual value '${limit}'`);
  const query = { filter, sort: readSort(body.sort), limit: Math.trunc(limit) };
  const isSingleBatch = readBoolean(body, "singleBatch", false);
  return { query, isSingleBatch, batchSize: readCount(body, "batchSize") ?? defaultBatchSize };
}

function readProjection(body: Document): ((document: Document) => Document) | undefined {
  const projection = readDocument(body, "projection");
  return Object.keys(projection).length === 0 ? undefined : compileProjection(projection);
}

function* bytesOf(rows: Iterable<Row>): Generator<Uint8Array> {
  for (const row of rows) yield row.bytes;
}

function* projected(rows: Iterable<Row>, project: (document: Document) => Document): Generator<Uint8Array> {
  for (const row of rows) yield encodeDocument(project(row.document()));
}

function getMore(context: CommandContext, body: Document): Document {
  const id = readCursorId(body.getMore);
  const name = collectionName(context, "collection", body.collection);
  const batchSize = readCount(body, "batchSize");
  const next = { id, namespace: `${context.db}.${name}`, batchSize: batchSize === 0 ? undefined : batchSize };
  return { cursor: context.engine.cursors.next(next) };
}

function readCursorId(value: unknown): Long {
  if (value instanceof Long) return value;
  const number = toNumber(value);
  if (number !== undefined) return Long.fromNumber(number);
  throw typeMismatch("the id of a cursor is of the wrong type, expected type 'long'");
}

function killCursors(context: CommandContext, body: Document): Document {
  collectionName(context, "killCursors", body.killCursors);
  const ids: unknown = body.cursors;
  if (!Array.isArray(ids))
    throw typeMismatch("BSON field 'killCursors.cursors' is the wrong type, expected type 'array'");
  return { cursorsKilled: ids.map(readCursorId).filter((id) => context.engine.cursors.kill(id)) };
}
