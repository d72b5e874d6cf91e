const RANK_CONSTANT = 60; // Cormack, Clarke and Büttcher 2009; also the constant of MongoDB's $rankFusion

/** What a list adds to its member of a rank, from 1. */
export const shareOfRank = (rank: number): number => 1 / (RANK_CONSTANT + rank);

/**
 * Reciprocal rank fusion: each list adds 1 / (60 + rank) to its members, rank from 1; the sums order the result.
 * Equal sums keep the order of first appearance, so the result is deterministic. `weights` multiply what the lists add; 1
 * where one is missing. `sumOf` is what an item has besides.
 */
export function fuseRanks<T>(
  lists: readonly (readonly T[])[],
  keyOf: (item: T) => string,
  weights: readonly number[] = [],
  sumOf: (item: T) => number = () => 0,
): { item: T; sum: number }[] {
  const fused = new Map<string, { item: T; sum: number }>();
  for (const [at, list] of lists.entries()) {
    for (const [index, item] of list.entries()) {
      const entry = fused.get(keyOf(item)) ?? { item, sum: sumOf(item) };
      entry.sum += (weights[at] ?? 1) * shareOfRank(index + 1);
      fused.set(keyOf(item), entry);
    }
  }
  return [...fused.values()].sort((a, b) => b.sum - a.sum);
}
