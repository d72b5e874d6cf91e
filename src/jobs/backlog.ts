import type { JobStore } from "../store/job-store.ts";

/** How long a count of the store is good for, in ms; in between, own submissions are added to it. */
const REFRESH_MS = 1_000;
/** Counting stops here: beyond it one tenant's jobs are all equally late. */
const MAX_COUNTED = 2_000;
/** Tenants that are remembered at once. */
const MAX_TENANTS = 10_000;

type Estimate = { count: number; refreshAt: number };

/** How many jobs of a tenant wait on a queue, about: counted in the background once a second, own submissions added. */
export function makeBacklog(store: Pick<JobStore, "countQueued">, onError: (error: unknown) => void) {
  const estimates = new Map<string, Estimate>();
  const refresh = async (tenantId: string, queue: string, estimate: Estimate) => {
    try {
      estimate.count = await store.countQueued(tenantId, queue, MAX_COUNTED);
    } catch (error) {
      onError(error); // the old estimate serves; a wrong priority is no wrong job
    }
  };
  /** Jobs of the tenant that wait before the one that is submitted now. */
  return function countBefore(tenantId: string, queue: string): number {
    const key = `${queue}\n${tenantId}`;
    if (estimates.size > MAX_TENANTS) estimates.clear();
    const estimate = estimates.get(key) ?? { count: 0, refreshAt: 0 };
    estimates.set(key, estimate);
    const now = performance.now();
    if (now >= estimate.refreshAt) {
      estimate.refreshAt = now + REFRESH_MS;
      void refresh(tenantId, queue, estimate);
    }
    estimate.count += 1;
    return estimate.count - 1;
  };
}
