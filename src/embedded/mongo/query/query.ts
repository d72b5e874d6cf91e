import { decodeDocument } from "../bson/bson-reader.ts";
import type { Document } from "../bson/bson-types.ts";
import { type Sort, sortComparator } from "../bson/compare.ts";
import { commandError } from "../command-error.ts";
import type { Collection } from "../storage/collection.ts";
import type { Row } from "../storage/documents.ts";
import { encodeValue } from "../storage/index-keys.ts";
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
  if (plan.isSorted) return cut(runPlan(collection, plan, filter, limit ? { limit } : {}), limit);
  const rows = runPlan(collection, plan, filter);
  return cut(sortRows(collection, rows, query.sort ?? {}, limit || undefined), limit);
}

/** The first of them, or undefined. */
export function findRow(collection: Collection | undefined, query: Query): Row | undefined {
  const rows = findRows(collection, { ...query, limit: 1 });
  const first = rows.next();
  return first.done === true ? undefined : first.value;
}

/** How many documents a query asks for. Where index keys alone tell, no document is read. */
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

function cut(rows: IteratorObject<Row>, limit: number | undefined): IteratorObject<Row> {
  return limit ? rows.take(limit) : rows;
}

/** Above this many bytes of documents a sort keeps only what it compares, and reads the documents again for its output. */
const sortMemoryBytes = 32 * 1024 * 1024;

function sortRows(
  collection: Collection,
  rows: Iterable<Row>,
  sort: Sort,
  wanted: number | undefined,
): IteratorObject<Row> {
  const compare = sortComparator(sort);
  const order = (a: Row, b: Row) => compare(a.document(), b.document());
  const roots = new Set(Object.keys(sort).map((path) => path.split(".", 1)[0] ?? path));
  let kept: Row[] = [];
  let bytes = 0;
  let isLight = false;
  const enough = wanted === undefined ? Number.POSITIVE_INFINITY : Math.max(wanted * 2, 64);
  for (const row of rows) {
    kept.push(isLight ? lighten(row, roots) : row);
    bytes += row.bytes.length;
    if (kept.length > enough) {
      kept.sort(order).splice(wanted ?? 0);
      bytes = kept.reduce((sum, one) => sum + one.bytes.length, 0);
    }
    if (!isLight && bytes > sortMemoryBytes) {
      isLight = true;
      kept = kept.map((one) => lighten(one, roots));
    }
  }
  kept.sort(order);
  return isLight ? kept.values().flatMap(({ rid }) => readAgain(collection, rid)) : kept.values();
}

/** The row without its bytes: only the fields that a sort compares. */
function lighten(row: Row, roots: ReadonlySet<string>): Row {
  const fields = decodeDocument(row.bytes, roots);
  return { rid: row.rid, bytes: new Uint8Array(0), document: () => fields };
}

function readAgain(collection: Collection, rid: number): Row[] {
  if (collection.isDropped) throw commandError("QueryPlanKilled", `collection dropped: ${collection.namespace}`);
  const row = readRow(collection, rid);
  return row === undefined ? [] : [row];
}
