import type { Document } from "../bson/bson-types.ts";
import { encodeValue } from "../bson/index-keys.ts";
import { type Sort, sortKey } from "../bson/order.ts";
import {
  allRows,
  type Collection,
  checkThere,
  chunkOf,
  firstChunk,
  largestChunk,
  noteBytes,
} from "../storage/collection.ts";
import { makeRow, type Row } from "../storage/storage.ts";
import { compileFilter } from "./filter.ts";
import { type IndexScan, type KeyRange, type Plan, type PlanRequest, planQuery } from "./planner.ts";

/** What is asked for. `limit` 0 or undefined: no limit. `fields`: those that are read of a document; undefined: all. */
export type Query = PlanRequest & { limit?: number | undefined; fields?: ReadonlySet<string> | undefined };

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
  if (id !== undefined) return findByKey(collection, encodeValue(id), query.fields).values();
  const plan = planQuery(collection, query);
  const { filter, limit } = query;
  const shown = { ...plan, fields: fieldsOf(query, plan) };
  const rows = runPlan(collection, shown, filter, plan.isSorted ? limit : undefined);
  const sorted = plan.isSorted ? rows : sortRows(rows, query.sort ?? {}, limit);
  return limit ? sorted.take(limit) : sorted;
}

/** The fields that are read of a document, what is tested and sorted by among them; undefined: all. */
function fieldsOf({ filter, sort, fields }: Query, { isExact, isSorted }: Plan): ReadonlySet<string> | undefined {
  if (fields === undefined) return undefined;
  const paths = [...(isExact ? [] : Object.keys(filter)), ...(isSorted ? [] : Object.keys(sort ?? {}))];
  if (paths.some((path) => path.startsWith("$"))) return undefined; // what stands below an operator is not looked for
  return new Set([...fields, ...paths.map((path) => path.split(".", 1)[0] ?? path)]);
}

/** How many documents a query asks for. Where the index keys answer it, no document is read. */
export function countRows(collection: Collection | undefined, query: Query): number {
  const total = collection === undefined ? undefined : countKeys(collection, query);
  if (total === undefined) return findRows(collection, query).reduce((count) => count + 1, 0);
  return query.limit ? Math.min(total, query.limit) : total;
}

function countKeys(collection: Collection, { filter }: Query): number | undefined {
  const { scan, isExact } = planQuery(collection, { filter });
  if (!isExact || (scan !== undefined && scan.index.multikey !== 0)) return undefined;
  const rows = scan?.ranges.map(({ low, high }) => scan.index.keys.count.get(low, high)) ?? [collection.countAll.get()];
  return rows.reduce((sum, row) => sum + Number((row as unknown as [number])[0]), 0); // prepared to give arrays
}

/** The value of `{ _id: value }` when that is the whole filter and the value stands for itself alone. */
function soleId(filter: Document): unknown {
  if (Object.keys(filter).length !== 1) return undefined;
  const { _id: id } = filter;
  if (typeof id === "string" || typeof id === "number") return id;
  if (typeof id !== "object" || id === null || !("_bsontype" in id)) return undefined;
  return id._bsontype === "ObjectId" ? id : undefined;
}

/** The document whose `_id` has that key: half the cost of a range of keys. */
function findByKey(collection: Collection, key: Uint8Array, fields?: ReadonlySet<string>): Row[] {
  checkThere(collection);
  const found = collection.byId.get(isBriefFor(collection, fields), key) as unknown as [number, Uint8Array] | undefined; // prepared so
  return found === undefined ? [] : [makeRow(found[0], found[1])];
}

/** The store sorts by an index, or asks for few: with a limit, no more than twice as many are kept at a time. */
function sortRows(rows: Iterable<Row>, sort: Sort, limit = 0): IteratorObject<Row> {
  const enough = limit === 0 ? Number.POSITIVE_INFINITY : Math.max(limit * 2, 64);
  const kept: { key: Buffer; row: Row }[] = [];
  const order = () => kept.sort((a, b) => Buffer.compare(a.key, b.key));
  for (const row of rows) {
    kept.push({ key: sortKey(row.document(), sort), row });
    if (kept.length > enough) order().splice(limit);
  }
  return Iterator.from(order()).map(({ row }) => row);
}

/**
 * The documents that a plan finds and the filter matches, in the plan's order. It reads a chunk at a time and holds no
 * statement open between chunks, so it may rest between two batches of a cursor while others write: it resumes behind
 * the last key that it has seen. `limit` is how many the caller will take, if it knows.
 */
export function* runPlan(collection: Collection, plan: Plan, filter: Document, limit?: number): Generator<Row> {
  const matches = plan.isExact ? undefined : compileFilter(filter);
  const chunk = plan.isExact && limit ? Math.min(limit, largestChunk) : firstChunk;
  for (const row of candidates(collection, plan, chunk)) {
    if (matches === undefined || matches(row.document())) yield row;
  }
}

function* candidates(collection: Collection, { scan, fields }: Plan, chunk: number): Generator<Row> {
  if (scan === undefined) return yield* allRows(collection);
  const seen = scan.index.multikey === 0 ? undefined : new Set<number>();
  const ranges = scan.isBackward ? scan.ranges.toReversed() : scan.ranges;
  const isOfIds = scan.isOfKeys && scan.index === collection.idIndex;
  const chunks = { firstSize: chunk, fields };
  for (const range of ranges) {
    for (const row of isOfIds ? findByKey(collection, range.low, fields) : scanRange(collection, scan, range, chunks)) {
      if (seen?.has(row.rid) === true) continue;
      seen?.add(row.rid);
      yield row;
    }
  }
}

/** 1 where none of the fields is large, so that rows are read without those that are; else 0. */
export function isBriefFor({ largeFields }: Collection, fields: ReadonlySet<string> | undefined): 0 | 1 {
  return fields && !largeFields.keys().some((name) => fields.has(name)) ? 1 : 0;
}

/** A row of an index. */
export type KeyRow = [key: Uint8Array, rid: number, bytes: Uint8Array];

type Chunks = { firstSize: number } & Pick<Plan, "fields">;

function* scanRange(collection: Collection, scan: IndexScan, range: KeyRange, chunks: Chunks): Generator<Row> {
  const { firstSize, fields } = chunks;
  const { isBackward } = scan;
  const statement = isBackward ? scan.index.keys.backward : scan.index.keys.forward;
  const end = isBackward ? range.low : range.high;
  let key = isBackward ? range.high : range.low;
  let rid = -1; // before every row of that key, in either direction
  for (let most = firstSize; ; most = Math.min(most * 4, largestChunk)) {
    checkThere(collection);
    const isBrief = isBriefFor(collection, fields);
    const size = chunkOf(collection, most, isBrief);
    const found = statement.all(isBrief, key, rid, end, size) as unknown as KeyRow[]; // prepared to give arrays
    const rows = found.map((row) => makeRow(row[1], row[2]));
    noteBytes(collection, rows, isBrief);
    yield* rows;
    const last = found.at(-1);
    if (last === undefined || found.length < size) return;
    key = last[0];
    rid = last[1];
  }
}
