import { LRUCache } from "lru-cache";

/** Filters whose outcome is remembered, how long in ms, and the longest of them, in characters. */
const REMEMBERED = 1_000;
const REMEMBERED_MS = 60_000;
const MAX_CHARACTERS = 1_000;
/** From this many matching documents on, it is cheaper to look at the hits than to name the documents to the search. */
const WIDE_FROM = 100;

/** Remembers which filters many documents match. Being wrong costs time alone. */
export function makeWideFilters() {
  const known = new LRUCache<string, boolean>({ max: REMEMBERED, ttl: REMEMBERED_MS });
  const keyOf = (tenantId: string, filter: object) => `${tenantId}\n${JSON.stringify(filter)}`;
  return {
    isWide: (tenantId: string, filter: object): boolean => known.get(keyOf(tenantId, filter)) ?? false,
    /** Notes how many documents matched, unless a search has shown more. */
    note(tenantId: string, filter: object, matched: number): void {
      const key = keyOf(tenantId, filter);
      if (key.length <= MAX_CHARACTERS && !known.has(key)) known.set(key, matched >= WIDE_FROM);
    },
    /** Notes that too few of the nearest hits matched. */
    noteShort: (tenantId: string, filter: object): void => void known.set(keyOf(tenantId, filter), false),
  };
}
