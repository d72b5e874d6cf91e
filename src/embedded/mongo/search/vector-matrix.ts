import type { Document } from "../bson/bson-types.ts";

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
export type Group = { key: string; values: Document; rows: Set<VectorRow> };

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
export function gather({ dimensions, matrix }: Partition, rows: readonly VectorRow[]): Float32Array {
  const block = new Float32Array(rows.length * dimensions);
  for (const [at, { place }] of rows.entries()) {
    block.set(matrix.subarray(place * dimensions, (place + 1) * dimensions), at * dimensions);
  }
  return block;
}
