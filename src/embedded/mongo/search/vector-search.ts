import type { Document } from "../bson/bson-types.ts";
import { compileFilter } from "../query/filter.ts";
import type { Conjunction } from "../query/predicates.ts";
import { type Group, gather, type Partition } from "./vector-matrix.ts";
import { scanNearest, scoreOfVector, toUnitLength } from "./vector-scan.ts";

export type VectorQuery = { vector: Float32Array; limit: number; filter: Document; conjunction: Conjunction };
export type VectorHit = { rid: number; score: number };

/** The nearest rows of some partitions, best score first, equal ones as they were stored. */
export function searchPartitions(partitions: readonly Partition[], query: VectorQuery): VectorHit[] {
  const vector = toUnitLength(query.vector);
  if (vector === undefined) return [];
  const matches = Object.keys(query.filter).length === 0 ? undefined : compileFilter(query.filter);
  const hits = partitions.flatMap((partition) => {
    const places = nearestPlaces(partition, { ...query, vector }, matches);
    return places.map((place) => ({
      rid: partition.rids[place] ?? 0,
      score: scoreOfVector(partition.matrix, place * partition.dimensions, vector),
    }));
  });
  return hits.sort((a, b) => b.score - a.score || a.rid - b.rid).slice(0, query.limit);
}

/** From this share of matching rows on, the whole block is scanned and the others are left out of the result. */
const scanAllFrom = 0.5;

function nearestPlaces(
  partition: Partition,
  query: Pick<VectorQuery, "vector" | "limit">,
  matches: ((values: Document) => boolean) | undefined,
): number[] {
  const groups = [...partition.groupOfKey.values()];
  const chosen = matches === undefined ? groups : groups.filter(({ values }) => matches(values));
  const count = chosen.reduce((sum, group) => sum + group.rids.size, 0);
  if (count === 0) return [];
  if (count === partition.count) return scanWhole(partition, query, query.limit);
  if (count >= partition.count * scanAllFrom) {
    const places = scanAround(partition, query, new Set(chosen), count);
    if (places !== undefined) return places;
  }
  const candidates = chosen.flatMap((group) => Array.from(group.rids, (rid) => partition.placeOfRid.get(rid) ?? 0));
  const wanted = Math.min(query.limit, candidates.length);
  const nearest = scanNearest(gather(partition, candidates), query.vector, wanted);
  return nearest.map((at) => candidates[at] ?? 0);
}

function scanWhole(partition: Partition, query: Pick<VectorQuery, "vector">, wanted: number): number[] {
  const block = partition.matrix.subarray(0, partition.count * partition.dimensions);
  return scanNearest(block, query.vector, Math.min(wanted, partition.count));
}

/**
 * Nearly all rows match: asks for more than is wanted and drops those that do not. The result is exact when enough are
 * left, because whatever lies behind them is farther away. Undefined when too many nearest rows did not match.
 */
function scanAround(
  partition: Partition,
  query: Pick<VectorQuery, "vector" | "limit">,
  chosen: ReadonlySet<Group>,
  count: number,
): number[] | undefined {
  const share = count / partition.count;
  const wanted = Math.min(partition.count, Math.ceil(query.limit / share) + query.limit + 16);
  const matching = scanWhole(partition, query, wanted).filter((place) => {
    const group = partition.groups[place];
    return group !== undefined && chosen.has(group);
  });
  const isEnough = matching.length >= Math.min(query.limit, count) || wanted === partition.count;
  return isEnough ? matching.slice(0, query.limit) : undefined;
}
