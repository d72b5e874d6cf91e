import type { Collection } from "../storage/collection.ts";

/**
 * Hits with the best score first. Those of equal score come in the order of their `_id`: what a search answers follows
 * from the documents alone, and not from the order in which they were stored.
 */
export function* bestFirst<T extends { rid: number; score: number }>(
  collection: Collection,
  hits: readonly T[],
): Generator<T> {
  const ranked = hits.toSorted((a, b) => b.score - a.score);
  for (let from = 0, to = 0; from < ranked.length; from = to) {
    const score = ranked[from]?.score;
    while (to < ranked.length && ranked[to]?.score === score) to++;
    const equal = ranked.slice(from, to);
    yield* equal.length === 1 ? equal : sortById(collection, equal);
  }
}

function sortById<T extends { rid: number }>(collection: Collection, hits: readonly T[]): T[] {
  return hits
    .flatMap((hit) => {
      const found = collection.idOf.get(hit.rid) as unknown as [Uint8Array] | undefined; // prepared to give arrays
      return found === undefined ? [] : [{ hit, id: found[0] }];
    })
    .sort((a, b) => Buffer.compare(a.id, b.id))
    .map(({ hit }) => hit);
}
