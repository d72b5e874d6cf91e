import type { Document } from "../bson/bson-types.ts";

/** Rows of one tenant (one value of the index's first filter path): their vectors lie in one block. */
export type Partition = {
  key: string;
  dimensions: number;
  /** The vectors of `rows`, one behind the other, from the start; the rest is room to grow. */
  matrix: Float32Array;
  rows: VectorRow[];
  groups: Map<string, Group>;
  /** What searches chose since rows last came or went, by the keys of their filters. */
  chosen: Map<string, Chosen>;
};

/** A document's row, and where its vector lies: `place` is its own among the rows of the partition. */
export type VectorRow = { rid: number; partition: Partition; place: number; group: Group };

/** Rows that have the same values at all filter paths, so that a filter is tested once for all of them. */
export type Group = { key: string; values: Document; rows: Set<VectorRow> };

/** The groups that match a filter, and how many rows they have. */
export type Chosen = { groups: ReadonlySet<Group>; count: number };

const firstRoom = 16;

export function makePartition(key: string, dimensions: number): Partition {
  const matrix = new Float32Array(firstRoom * dimensions);
  return { key, dimensions, matrix, rows: [], groups: new Map(), chosen: new Map() };
}

/** Adds a row behind the others. Its vector is of length 1. */
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
  partition.chosen.clear();
  makeRoom(partition);
  partition.matrix.set(vector, row.place * dimensions);
  return row;
}

/** Removes a row; the last one takes its place, so that the block stays without holes. */
export function removeRow(row: VectorRow): void {
  const { partition, place, group } = row;
  const { dimensions, matrix, rows } = partition;
  partition.chosen.clear();
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

/** Dot product of `query` and the vector that begins at `start`. */
export function dotProduct(block: Float32Array, start: number, query: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < query.length; at++) sum += (block[start + at] ?? 0) * (query[at] ?? 0);
  return sum;
}

/** The vector with length 1; undefined when it has no direction. */
export function toUnitLength(vector: Float32Array): Float32Array | undefined {
  const length = Math.sqrt(dotProduct(vector, 0, vector));
  if (length === 0 || !Number.isFinite(length)) return undefined;
  return vector.map((value) => value / length);
}
