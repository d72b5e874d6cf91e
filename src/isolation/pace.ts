import { makeEffort } from "./effort.ts";
import { makePresence } from "./presence.ts";
import { makeShares } from "./shares.ts";

/** The pause after one part of a tenant's bulk work, in times of the part: with it the tenant has a quarter of the process. */
const PAUSES_A_PART = 3;
/** Longest such pause, in ms. */
const MAX_PAUSE_MS = 1_000;
/** Jobs of a tenant that run at once in a process and on a queue, while others work here and it did much of late. */
const JOBS_AT_ONCE = 4;

export type Pace = ReturnType<typeof makePace>;

/** Keeps one tenant's bulk work from taking all that a process and its store can do while others work here. */
export function makePace(now: () => number = () => performance.now()) {
  const effort = makeEffort(now);
  const turns = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: 1 });
  const jobs = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: JOBS_AT_ONCE });
  const { begins, hasOthers } = makePresence(now);
  return {
    /** Notes that work of the tenant begins. */
    begins,
    /**
     * Waits until a job of the tenant on a queue may begin, and returns how its end is noted. A few jobs that share the
     * tenant's parts do as much as many, and begin and resume less often. @throws the signal's reason.
     */
    enterJob(tenantId: string, queue: string, signal: AbortSignal): Promise<() => void> {
      const isMuch = hasOthers(tenantId) && effort.isHigh(tenantId);
      return jobs.enter(`${queue}:${tenantId}`, signal, isMuch ? JOBS_AT_ONCE : Number.POSITIVE_INFINITY);
    },
    /**
     * Runs one part of a tenant's work. While others work here, one part of a tenant runs at a time; if it did much of late, the
     * next one waits for three times as long as this one took. @throws what `work` throws; the signal's reason.
     */
    async share<T>(tenantId: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
      const leave = hasOthers(tenantId) ? await turns.enter(tenantId, signal) : undefined;
      const startedAt = now();
      try {
        return await work();
      } finally {
        const tookMs = now() - startedAt;
        effort.add(tenantId, tookMs);
        if (leave && effort.isHigh(tenantId)) setTimeout(leave, Math.min(PAUSES_A_PART * tookMs, MAX_PAUSE_MS)).unref();
        else leave?.();
      }
    },
  };
}
