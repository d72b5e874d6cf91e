import type { Document } from "./bson-types.ts";
import { decodeDocument } from "./codec.ts";
import type { Collection } from "./collection.ts";
import { commandError } from "./command-error.ts";
import type { Row } from "./documents.ts";
import { compileFilter } from "./filter.ts";
import type { KeyRange } from "./key-ranges.ts";
import type { IndexScan, Plan } from "./planner.ts";

/** How many rows are read at a time: few at first, for those who want only one; more as the scan goes on. */
const firstChunk = 4;
const largestChunk = 256;

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

/** Throws 50 (MaxTimeMSExpired) once the time of the command is over. `undefined` is no limit. */
export type Deadline = { check(): void } | undefined;

export function makeDeadline(maxTimeMs: number): Deadline {
  if (maxTimeMs <= 0) return undefined;
  const end = performance.now() + maxTimeMs;
  return {
    check: () => {
      if (performance.now() > end) throw commandError("MaxTimeMSExpired", "operation exceeded time limit");
    },
  };
}

/**
 * The documents that a plan finds and the filter matches, in the plan's order. It reads a chunk at a time and holds no
 * statement open between chunks, so it may rest between two batches of a cursor while others write: it goes on behind
 * the last key that it has seen. `limit` is how many the caller will take, if it knows.
 */
export function* runPlan(
  collection: Collection,
  plan: Plan,
  filter: Document,
  options: { limit?: number; deadline?: Deadline; onExamined?: () => void } = {},
): Generator<Row> {
  const matches = plan.isExact ? undefined : compileFilter(filter);
  const chunk = plan.isExact && options.limit ? Math.min(options.limit, largestChunk) : firstChunk;
  for (const row of candidates(collection, plan, chunk, options.deadline)) {
    options.onExamined?.();
    if (matches === undefined || matches(row.document())) yield row;
  }
}

function* candidates(collection: Collection, plan: Plan, chunk: number, deadline: Deadline): Generator<Row> {
  if (plan.scans.length === 0) {
    yield* fullScan(collection, deadline);
    return;
  }
  const seen =
    plan.scans.length > 1 || plan.scans.some(({ index }) => index.multikey !== 0) ? new Set<number>() : undefined;
  for (const scan of plan.scans) {
    const ranges = scan.isBackward ? scan.ranges.toReversed() : scan.ranges;
    for (const range of ranges) {
      for (const row of scanRange(scan, range, chunk, deadline)) {
        if (seen?.has(row.rid) === true) continue;
        seen?.add(row.rid);
        yield row;
      }
    }
  }
}

type KeyRow = [key: Uint8Array, rid: number, bytes: Uint8Array];

function* scanRange(scan: IndexScan, range: KeyRange, firstSize: number, deadline: Deadline): Generator<Row> {
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
    deadline?.check();
    key = last[0];
    rid = last[1];
  }
}

function* fullScan(collection: Collection, deadline: Deadline): Generator<Row> {
  let rid = 0;
  for (let size = firstChunk; ; size = Math.min(size * 4, largestChunk)) {
    if (collection.isDropped) throw commandError("QueryPlanKilled", `collection dropped: ${collection.namespace}`);
    const rows = collection.scan.all(rid, size) as unknown as [number, Uint8Array][]; // prepared to give arrays
    for (const row of rows) yield makeRow(row[0], row[1]);
    const last = rows.at(-1);
    if (last === undefined || rows.length < size) return;
    deadline?.check();
    rid = last[0];
  }
}
