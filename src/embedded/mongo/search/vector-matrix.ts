import type { Document } from "../bson/bson-types.ts";

/** Rows of one tenant (one value of the index's first filter path): their vectors lie in one block. */
export type Partition = {
  dimensions: number;
  /** `count` vectors, one behind the other, from the start; the rest is room to grow. */
  matrix: Float32Array;
  count: number;
  /** Of each place in the matrix: the document's row, and which combination of filter values it has. */
  rids: number[];
  groups: Group[];
  placeOfRid: Map<number, number>;
  groupOfKey: Map<string, Group>;
};

/** Rows that have the same values at all filter paths, so that a filter is tested once for all of them. */
export type Group = { key: string; values: Document; rids: Set<number> };

const firstRoom = 16;

export function makePartition(dimensions: number): Partition {
  return {
    dimensions,
    matrix: new Float32Array(firstRoom * dimensions),
    count: 0,
    rids: [],
    groups: [],
    placeOfRid: new Map(),
    groupOfKey: new Map(),
  };
}

/** Adds a row, or gives a row that is there a new vector and new filter values. */
export function putRow(
  partition: Partition,
  rid: number,
  row: { vector: Float32Array; groupKey: string; values: () => Document },
): void {
  let place = partition.placeOfRid.get(rid);
  if (place === undefined) {
    place = partition.count;
    makeRoom(partition);
    partition.count++;
    partition.rids[place] = rid;
    partition.placeOfRid.set(rid, place);
  } else {
    leaveGroup(partition, rid, place);
  }
  partition.matrix.set(row.vector, place * partition.dimensions);
  let group = partition.groupOfKey.get(row.groupKey);
  if (group === undefined) {
    group = { key: row.groupKey, values: row.values(), rids: new Set() };
    partition.groupOfKey.set(row.groupKey, group);
  }
  group.rids.add(rid);
  partition.groups[place] = group;
}

/** Removes a row; the last one takes its place, so that the block stays without holes. */
export function removeRow(partition: Partition, rid: number): void {
  const place = partition.placeOfRid.get(rid);
  if (place === undefined) return;
  leaveGroup(partition, rid, place);
  partition.placeOfRid.delete(rid);
  const last = partition.count - 1;
  const lastRid = partition.rids[last];
  const lastGroup = partition.groups[last];
  if (place !== last && lastRid !== undefined && lastGroup !== undefined) {
    const { dimensions, matrix } = partition;
    matrix.copyWithin(place * dimensions, last * dimensions, (last + 1) * dimensions);
    partition.rids[place] = lastRid;
    partition.groups[place] = lastGroup;
    partition.placeOfRid.set(lastRid, place);
  }
  partition.rids.pop();
  partition.groups.pop();
  partition.count = last;
}

function leaveGroup(partition: Partition, rid: number, place: number): void {
  const group = partition.groups[place];
  if (group === undefined) return;
  group.rids.delete(rid);
  if (group.rids.size === 0) partition.groupOfKey.delete(group.key);
}

/** Room is doubled: memory that is not written to yet costs nothing, and copying is rare. */
function makeRoom(partition: Partition): void {
  const { matrix, count, dimensions } = partition;
  if ((count + 1) * dimensions <= matrix.length) return;
  const grown = new Float32Array(matrix.length * 2);
  grown.set(matrix);
  partition.matrix = grown;
}

/** The vectors of some rows, copied into a block of their own. */
export function gather(partition: Partition, places: readonly number[]): Float32Array {
  const { dimensions, matrix } = partition;
  const block = new Float32Array(places.length * dimensions);
  places.forEach((place, at) => {
    block.set(matrix.subarray(place * dimensions, (place + 1) * dimensions), at * dimensions);
  });
  return block;
}
