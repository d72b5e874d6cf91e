import { decodeDocument } from "../bson/bson-reader.ts";
import type { Document } from "../bson/bson-types.ts";
import { commandError } from "../command-error.ts";
import { allRows, type Collection, firstChunk, largestChunk } from "../storage/collection.ts";
import type { Row } from "../storage/documents.ts";
import { compileFilter } from "./filter.ts";
import type { KeyRange } from "./key-ranges.ts";
import type { IndexScan, Plan } from "./planner.ts";

/** A stored document that is decoded when first asked for. */
export function makeRow(rid: number, bytes: Uint8Array): Row {
  let decoded: Document | undefined;
  return {
    rid,
    bytes,
    document: () => {
      decoded ??= decodeDocument(bytes);
      return decoded;
    },
  };
}

/** The document of that row, undefined when it is gone. */
export function readRow(collection: Collection, rid: number): Row | undefined {
  const found = collection.byRid.get(rid) as unknown as [Uint8Array] | undefined; // prepared to give arrays
  return found && makeRow(rid, found[0]);
}

/**
 * The documents that a plan finds and the filter matches, in the plan's order. It reads a chunk at a time and holds no
 * statement open between chunks, so it may rest between two batches of a cursor while others write: it goes on behind
 * the last key that it has seen. `limit` is how many the caller will take, if it knows.
 */
export function* runPlan(collection: Collection, plan: Plan, filter: Document, limit?: number): Generator<Row> {
  const matches = plan.isExact ? undefined : compileFilter(filter);
  const chunk = plan.isExact && limit ? Math.min(limit, largestChunk) : firstChunk;
  for (const row of candidates(collection, plan, chunk)) {
    if (matches === undefined || matches(row.document())) yield row;
  }
}

function* candidates(collection: Collection, { scan }: Plan, chunk: number): Generator<Row> {
  if (scan === undefined) {
    for (const { rid, bytes } of allRows(collection)) yield makeRow(rid, bytes);
    return;
  }
  const seen = scan.index.multikey === 0 ? undefined : new Set<number>();
  const ranges = scan.isBackward ? scan.ranges.toReversed() : scan.ranges;
  for (const range of ranges) {
    for (const row of scanRange(scan, range, chunk)) {
      if (seen?.has(row.rid) === true) continue;
      seen?.add(row.rid);
      yield row;
    }
  }
}

type KeyRow = [key: Uint8Array, rid: number, bytes: Uint8Array];

function* scanRange(scan: IndexScan, range: KeyRange, firstSize: number): Generator<Row> {
  const { isBackward } = scan;
  const statement = isBackward ? scan.index.keys.backward : scan.index.keys.forward;
  const end = isBackward ? range.low : range.high;
  let key = isBackward ? range.high : range.low;
  let rid = -1; // before every row of that key, in either direction
  for (let size = firstSize; ; size = Math.min(size * 4, largestChunk)) {
    if (scan.index.isDropped) throw commandError("QueryPlanKilled", `index '${scan.index.name}' dropped`);
    const rows = statement.all(key, rid, end, size) as unknown as KeyRow[]; // prepared to give arrays
    for (const row of rows) yield makeRow(row[1], row[2]);
    const last = rows.at(-1);
    if (last === undefined || rows.length < size) return;
    key = last[0];
    rid = last[1];
  }
}
