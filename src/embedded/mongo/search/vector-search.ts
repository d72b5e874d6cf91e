import type { Document } from "../bson/bson-types.ts";
import { keyOf } from "../bson/index-keys.ts";
import { compileFilter, type Matcher } from "../query/filter.ts";
import { type NearRow, nearestRows } from "./nearest-rows.ts";
import type { Chosen, Partition, VectorRow } from "./partition.ts";
import { dotProduct, toUnitLength } from "./partition.ts";

export type VectorQuery = { vector: Float32Array; limit: number; filter: Document };
type VectorHit = { rid: number; score: number };
type Filter = { key: string; matches: Matcher };

/** The nearest rows of some partitions, best score first, equal ones as they were stored. */
export function searchPartitions(partitions: readonly Partition[], query: VectorQuery): VectorHit[] {
  const vector = toUnitLength(query.vector);
  if (vector === undefined) return [];
  const filter = { matches: compileFilter(query.filter), key: keyOf(query.filter) };
  const square = dotProduct(vector, 0, vector);
  const hits = partitions.flatMap((partition) =>
    nearestMatches(partition, { vector, limit: query.limit, filter }).map((near) => {
      return { rid: near.row.rid, score: scoreOf(near, square) };
    }),
  );
  return hits.sort((a, b) => b.score - a.score || a.rid - b.rid).slice(0, query.limit);
}

/** From this share of matching rows on, the whole block is scanned and the others are left out. */
const scanAllFrom = 0.2;

function nearestMatches(
  partition: Partition,
  { vector, limit, filter }: Omit<VectorQuery, "filter"> & { filter: Filter },
): NearRow[] {
  const { rows } = partition;
  const { groups, count } = chooseGroups(partition, filter);
  const share = count / rows.length;
  if (share >= scanAllFrom) {
    const among = { isWanted: ({ group }: VectorRow) => groups.has(group), share };
    const wanted = Math.min(limit, count);
    const nearest = nearestRows(partition, { vector, count: wanted, rows, ...(share < 1 ? { among } : {}) });
    if (nearest.length === wanted) return nearest;
  }
  return nearestRows(partition, { vector, count: limit, rows: [...groups.values().flatMap((group) => group.rows)] });
}

/** Filters that are remembered for a partition, and the length of the longest one: a tenant has few, and many groups. */
const mostFilters = 8;
const longestFilter = 1_000;

function chooseGroups({ groups, chosen }: Partition, { key, matches }: Filter): Chosen {
  const known = chosen.get(key);
  if (known) return known;
  const matching = new Set(groups.values().filter(({ values }) => matches(values)));
  const count = matching.values().reduce((sum, group) => sum + group.rows.size, 0);
  const result = { groups: matching, count };
  if (chosen.size === mostFilters) chosen.clear();
  if (key.length <= longestFilter) chosen.set(key, result);
  return result;
}

/** The score that Atlas gives, between 0 and 1: (1 + cosine) / 2. `square` is the product of the query's vector with itself. */
function scoreOf({ row: { partition, place }, product }: NearRow, square: number): number {
  // Both are of length 1 but for the rounding to 32 bits, which is taken out again.
  const start = place * partition.dimensions;
  const vector = partition.matrix.subarray(start, start + partition.dimensions);
  const cosine = product / Math.sqrt(dotProduct(vector, 0, vector) * square);
  return (1 + Math.max(-1, Math.min(1, cosine))) / 2;
}
