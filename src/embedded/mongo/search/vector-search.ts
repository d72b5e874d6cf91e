import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import type { Document } from "../bson/bson-types.ts";
import { compileFilter, type Matcher } from "../query/filter.ts";

/** Rows of one tenant (one value of the index's first filter path): their vectors lie in one block. */
export type Partition = {
  key: string;
  dimensions: number;
  /** The vectors of `rows`, one behind the other, from the start; the rest is room to grow. */
  matrix: Float32Array;
  rows: VectorRow[];
  groups: Map<string, Group>;
};

/** A document's row, and where its vector lies: `place` is its own among the rows of the partition. */
export type VectorRow = { rid: number; partition: Partition; place: number; group: Group };

/** Rows that have the same values at all filter paths, so that a filter is tested once for all of them. */
type Group = { key: string; values: Document; rows: Set<VectorRow> };

const firstRoom = 16;

export function makePartition(key: string, dimensions: number): Partition {
  return { key, dimensions, matrix: new Float32Array(firstRoom * dimensions), rows: [], groups: new Map() };
}

/** Adds a row behind the others. */
export function addRow(
  partition: Partition,
  { rid, vector, ...given }: { rid: number; vector: Float32Array } & Omit<Group, "rows">,
): VectorRow {
  const { dimensions, rows, groups } = partition;
  const group: Group = groups.get(given.key) ?? { ...given, rows: new Set() };
  const row = { rid, partition, place: rows.length, group };
  groups.set(group.key, group);
  group.rows.add(row);
  rows.push(row);
  makeRoom(partition);
  partition.matrix.set(vector, row.place * dimensions);
  return row;
}

/** Removes a row; the last one takes its place, so that the block stays without holes. */
export function removeRow(row: VectorRow): void {
  const { partition, place, group } = row;
  const { dimensions, matrix, rows } = partition;
  group.rows.delete(row);
  if (group.rows.size === 0) partition.groups.delete(group.key);
  const last = rows.pop();
  if (last === undefined || last === row) return;
  matrix.copyWithin(place * dimensions, last.place * dimensions, (last.place + 1) * dimensions);
  last.place = place;
  rows[place] = last;
}

/** Room is doubled: memory that is not written to yet costs nothing, and copying is rare. */
function makeRoom(partition: Partition): void {
  const { matrix, rows, dimensions } = partition;
  if (rows.length * dimensions <= matrix.length) return;
  partition.matrix = new Float32Array(matrix.length * 2);
  partition.matrix.set(matrix);
}

/** The vectors of some rows, copied into a block of their own. */
function gather({ dimensions, matrix }: Partition, rows: readonly VectorRow[]): Float32Array {
  const block = new Float32Array(rows.length * dimensions);
  for (const [at, { place }] of rows.entries()) {
    block.set(matrix.subarray(place * dimensions, (place + 1) * dimensions), at * dimensions);
  }
  return block;
}

export type VectorQuery = { vector: Float32Array; limit: number; filter: Document };
type VectorHit = { rid: number; score: number };

/** The nearest rows of some partitions, best score first, equal ones as they were stored. */
export function searchPartitions(partitions: readonly Partition[], query: VectorQuery): VectorHit[] {
  const vector = toUnitLength(query.vector);
  if (vector === undefined) return [];
  const matches = compileFilter(query.filter);
  const hits = partitions.flatMap((partition) =>
    nearestRows(partition, { ...query, vector }, matches).map(({ rid, place }) => {
      return { rid, score: scoreOf(partition.matrix, place * partition.dimensions, vector) };
    }),
  );
  return hits.sort((a, b) => b.score - a.score || a.rid - b.rid).slice(0, query.limit);
}

/** From this share of matching rows on, the whole block is scanned and the others are left out of the result. */
const scanAllFrom = 0.2;

function nearestRows(partition: Partition, { vector, limit }: VectorQuery, matches: Matcher): VectorRow[] {
  const { rows, matrix, dimensions } = partition;
  const chosen = new Set(partition.groups.values().filter(({ values }) => matches(values)));
  const count = chosen.values().reduce((sum, group) => sum + group.rows.size, 0);
  const share = count / rows.length;
  if (share >= scanAllFrom) {
    // More are asked for than are wanted. The result is exact when enough of them match: what lies behind is farther away.
    const asked = share === 1 ? limit : Math.ceil(limit / share) + limit + 16;
    const block = matrix.subarray(0, rows.length * dimensions);
    const places = scanNearest(block, vector, Math.min(asked, rows.length));
    const nearest = places.flatMap((place) => rows[place] ?? []).filter(({ group }) => chosen.has(group));
    if (nearest.length >= Math.min(limit, count)) return nearest.slice(0, limit);
  }
  if (count === 0) return [];
  const candidates = [...chosen.values().flatMap((group) => group.rows)];
  const places = scanNearest(gather(partition, candidates), vector, Math.min(limit, count));
  return places.flatMap((place) => candidates[place] ?? []);
}

/** Places of the nearest vectors, nearest first. */
type Scan = (block: Float32Array, query: Float32Array, wanted: number) => number[];

/** Above this many numbers a scan is worth the cost of starting threads. */
const threadsFrom = 4_000_000;
const maxThreads = 4;

let loadedScan: Scan | undefined;

/** All vectors are of length 1. `block` must begin at the start of its buffer: the library ignores a view's offset. */
function scanNearest(block: Float32Array, query: Float32Array, wanted: number): number[] {
  loadedScan ??= loadScan();
  return loadedScan(block, query, wanted);
}

/** The SIMD library where it has a binary for this machine; a plain loop, some ten times slower, elsewhere. */
function loadScan(): Scan {
  try {
    const usearch: typeof import("usearch") = createRequire(import.meta.url)("usearch");
    const cores = Math.min(availableParallelism(), maxThreads);
    return (block, query, wanted) => {
      const threads = block.length >= threadsFrom ? cores : 1;
      const { keys } = usearch.exactSearch(block, query, query.length, wanted, usearch.MetricKind.IP, threads);
      return Array.from(keys, Number);
    };
  } catch {
    return scanInJavaScript;
  }
}

function scanInJavaScript(block: Float32Array, query: Float32Array, wanted: number): number[] {
  const places = Array.from({ length: block.length / query.length }, (_, place) => place);
  const products = places.map((place) => dotProduct(block, place * query.length, query));
  return places.sort((a, b) => (products[b] ?? 0) - (products[a] ?? 0)).slice(0, wanted);
}

/** Dot product of `query` and the vector that begins at `start`. */
function dotProduct(block: Float32Array, start: number, query: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < query.length; at++) sum += (block[start + at] ?? 0) * (query[at] ?? 0);
  return sum;
}

/** The score that Atlas gives, between 0 and 1: (1 + cosine) / 2. */
function scoreOf(block: Float32Array, start: number, query: Float32Array): number {
  // Both are of length 1 but for the rounding to 32 bits, which is taken out again.
  const vector = block.subarray(start, start + query.length);
  const lengths = Math.sqrt(dotProduct(vector, 0, vector) * dotProduct(query, 0, query));
  return (1 + Math.max(-1, Math.min(1, dotProduct(block, start, query) / lengths))) / 2;
}

/** The vector with length 1; undefined when it has no direction. */
export function toUnitLength(vector: Float32Array): Float32Array | undefined {
  const length = Math.sqrt(dotProduct(vector, 0, vector));
  if (length === 0 || !Number.isFinite(length)) return undefined;
  return vector.map((value) => value / length);
}
