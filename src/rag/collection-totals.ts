import { LRUCache } from "lru-cache";
import type { DocumentTotals, TotalsQuery } from "../store/document-totals.ts";
import type { RagDeps } from "./deps.ts";

/** Totals of more documents than this are reused for a while: counting them takes the store some ms for each thousand. */
const MANY = 1_000;
/** For how long, as a multiple of the time that they took: so counting takes at most a tenth of a store's time. */
const REUSE = 10;
const MAX_KEPT = 1_000;

export type ReadTotals = (tenantId: string, query: TotalsQuery) => Promise<DocumentTotals>;

/** Makes the function that counts a tenant's documents by collection; of calls for the same, one counts. */
export function makeReadTotals({ store }: Pick<RagDeps, "store">): ReadTotals {
  const known = new LRUCache<string, Promise<DocumentTotals>>({ max: MAX_KEPT, ttl: 1 });
  const running = new Map<string, Promise<DocumentTotals>>();
  return (tenantId, query) => {
    const key = JSON.stringify([tenantId, query]);
    const count = async () => {
      const beganAt = performance.now();
      const { totals, read } = await store.documents.totals(tenantId, query);
      const ttl = REUSE * (performance.now() - beganAt);
      if (read > MANY) known.set(key, Promise.resolve(totals), { ttl });
      return totals;
    };
    const found = known.get(key) ?? running.get(key);
    if (found) return found;
    const counting = count().finally(() => running.delete(key));
    running.set(key, counting);
    return counting;
  };
}
