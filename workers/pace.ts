import { setTimeout as delay } from "node:timers/promises";
import { makeEffort } from "../src/isolation/effort.ts";
import { makeShares } from "../src/isolation/shares.ts";

/** How long after the begin of its last job a tenant counts as one that works here, in ms. */
const PRESENT_MS = 5_000;
/** Longest pause after one part of a tenant's bulk work, in ms. */
const MAX_PAUSE_MS = 1_000;

export type Pace = ReturnType<typeof makePace>;

/** Keeps one tenant's bulk work from taking all that a worker and its store can do while jobs of others run here. */
export function makePace(now: () => number = () => performance.now()) {
  const effort = makeEffort(now);
  const turns = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: 1 });
  const begunAt = new Map<string, number>();
  const hasOthers = (tenantId: string) =>
    begunAt.entries().some(([other, at]) => other !== tenantId && now() - at < PRESENT_MS);
  return {
    /** Notes that a job of the tenant begins. */
    begins(tenantId: string): void {
      for (const [other, at] of begunAt) if (now() - at >= PRESENT_MS) begunAt.delete(other);
      begunAt.set(tenantId, now());
    },
    /**
     * Runs one part of a tenant's work. Of a tenant that did much of late, while others work here, one part runs at a time, and
     * a pause as long as it follows. @throws what `work` throws; the signal's reason.
     */
    async share<T>(tenantId: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
      const isPaced = effort.isHigh(tenantId) && hasOthers(tenantId);
      const leave = isPaced ? await turns.enter(tenantId, signal) : undefined;
      const startedAt = now();
      try {
        return await work();
      } finally {
        const tookMs = now() - startedAt;
        effort.add(tenantId, tookMs);
        const pause = leave && delay(Math.min(tookMs, MAX_PAUSE_MS), undefined, { signal }).catch(() => undefined);
        await pause?.finally(leave); // aborted: no pause
      }
    },
  };
}
