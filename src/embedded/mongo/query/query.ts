import type { Document } from "../bson/bson-types.ts";
import { encodeValue } from "../bson/index-keys.ts";
import { type Sort, sortKey } from "../bson/order.ts";
import { commandError } from "../command-error.ts";
import type { Collection } from "../storage/collection.ts";
import type { Row } from "../storage/documents.ts";
import { compileFilter } from "./filter.ts";
import { planQuery } from "./planner.ts";
import { makeRow, readRow, runPlan } from "./scan.ts";

export type Query = {
  filter: Document;
  sort?: Sort | undefined;
  /** 0 or undefined: no limit. */
  limit?: number | undefined;
};

/**
 * The stored documents that a query asks for, in its order. Where an index gives the order they come as they are read;
 * otherwise all are read and sorted, keeping no more than the limit.
 * @throws CommandError for a filter that is malformed, also when the collection does not exist.
 */
export function findRows(collection: Collection | undefined, query: Query): IteratorObject<Row> {
  if (collection === undefined) {
    compileFilter(query.filter);
    return [].values();
  }
  const id = soleId(query.filter);
  if (id !== undefined) return findById(collection, id).values();
  const plan = planQuery(collection, query);
  const { filter, limit } = query;
  const rows = runPlan(collection, plan, filter, plan.isSorted ? limit : undefined);
  const sorted = plan.isSorted ? rows : sortRows(collection, rows, query.sort ?? {}, limit);
  return limit ? sorted.take(limit) : sorted;
}

/** The first document that a filter matches, or undefined. */
export function findRow(collection: Collection | undefined, filter: Document): Row | undefined {
  const [row] = findRows(collection, { filter, limit: 1 });
  return row;
}

/** How many documents a query asks for. Where the index keys answer it, no document is read. */
export function countRows(collection: Collection | undefined, query: Query): number {
  const total = collection === undefined ? undefined : countKeys(collection, query);
  if (total === undefined) return findRows(collection, query).reduce((count) => count + 1, 0);
  return query.limit ? Math.min(total, query.limit) : total;
}

function countKeys(collection: Collection, query: Query): number | undefined {
  const plan = planQuery(collection, { filter: query.filter });
  const { scan } = plan;
  if (!plan.isExact || (scan !== undefined && scan.index.multikey !== 0)) return undefined;
  if (scan === undefined) return readNumber(collection.countAll.get());
  return scan.ranges
    .map(({ low, high }) => readNumber(scan.index.keys.count.get(low, high)))
    .reduce((sum, count) => sum + count, 0);
}

function readNumber(row: unknown): number {
  return Array.isArray(row) ? Number(row[0]) : 0;
}

/** The value of `{ _id: value }` when that is the whole filter and the value stands for itself alone. */
function soleId(filter: Document): unknown {
  let id: unknown;
  for (const name in filter) {
    if (name !== "_id") return undefined;
    id = filter._id;
  }
  if (typeof id === "string" || typeof id === "number") return id;
  if (typeof id !== "object" || id === null || !("_bsontype" in id)) return undefined;
  return id._bsontype === "ObjectId" ? id : undefined;
}

function findById(collection: Collection, id: unknown): Row[] {
  const found = collection.byId.get(encodeValue(id)) as unknown as [number, Uint8Array] | undefined; // prepared so
  return found === undefined ? [] : [makeRow(found[0], found[1])];
}

/** Above this many bytes of documents a sort keeps only their keys, and reads the documents again for its output. */
const sortMemoryBytes = 32 * 1024 * 1024;

type Sorted = { key: Buffer; rid: number; row: Row | undefined };

function sortRows(collection: Collection, rows: Iterable<Row>, sort: Sort, limit = 0): IteratorObject<Row> {
  const enough = limit === 0 ? Number.POSITIVE_INFINITY : Math.max(limit * 2, 64);
  const kept: Sorted[] = [];
  const order = () => kept.sort((a, b) => Buffer.compare(a.key, b.key));
  let bytes = 0;
  for (const row of rows) {
    const isLight = bytes > sortMemoryBytes;
    bytes += row.bytes.length;
    kept.push({ key: sortKey(row.document(), sort), rid: row.rid, row: isLight ? undefined : row });
    if (kept.length > enough) order().splice(limit);
    if (!isLight && bytes > sortMemoryBytes) for (const entry of kept) entry.row = undefined;
  }
  return order()
    .values()
    .flatMap(({ rid, row }) => (row === undefined ? readAgain(collection, rid) : [row]));
}

function readAgain(collection: Collection, rid: number): Row[] {
  if (collection.isDropped) throw commandError("QueryPlanKilled", `collection dropped: ${collection.namespace}`);
  const row = readRow(collection, rid);
  return row === undefined ? [] : [row];
}
