import { setTimeout as delay } from "node:timers/promises";
import { makeEffort } from "./effort.ts";
import { makePresence } from "./presence.ts";
import { makeShares } from "./shares.ts";

/** Longest pause after one part of a tenant's bulk work, in ms. */
const MAX_PAUSE_MS = 1_000;

export type Pace = ReturnType<typeof makePace>;

/** Keeps one tenant's bulk work from taking all that a process and its store can do while others work here. */
export function makePace(now: () => number = () => performance.now()) {
  const effort = makeEffort(now);
  const turns = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: 1 });
  const { begins, hasOthers } = makePresence(now);
  return {
    /** Notes that work of the tenant begins. */
    begins,
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
