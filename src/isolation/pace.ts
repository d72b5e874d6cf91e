import { makeShares } from "./shares.ts";

/** How long after the begin of its last work a tenant counts as one that works here, in ms. */
const PRESENT_MS = 5_000;

export type Presence = ReturnType<typeof makePresence>;

/** Knows whether a tenant is alone in a process. */
export function makePresence(now: () => number = () => performance.now()) {
  /** Who began last, and who before: of two different tenants one is another than any third. */
  let last = { tenantId: "", at: Number.NEGATIVE_INFINITY };
  let before = { ...last };
  return {
    /** Notes that work of the tenant begins. It is called for each request, so it makes no objects. */
    begins(tenantId: string): void {
      if (last.tenantId !== tenantId) [last, before] = [before, last];
      last.tenantId = tenantId;
      last.at = now();
    },
    /** Whether another tenant's work began of late. */
    hasOthers(tenantId: string): boolean {
      const other = last.tenantId === tenantId ? before : last;
      return now() - other.at < PRESENT_MS;
    },
  };
}

/** The pause after one part of a tenant's bulk work, in times of the part: with it the tenant has a quarter of the process. */
const PAUSES_A_PART = 3;
/** Longest such pause, in ms. */
const MAX_PAUSE_MS = 1_000;
/** Jobs of a tenant that run at once in a process and on a queue, while others work here and it did much of late. */
const JOBS_AT_ONCE = 4;
/** Runs inside of runs that are under way at once in a process, at each depth: of one job, of a tenant, and of all. */
const INNER_AT_ONCE = { job: 4, tenant: 16, all: 32 };
/** Those of a tenant while others work here. */
const INNER_SHARED = 4;

type Shares = ReturnType<typeof makeShares>;
export type Pace = ReturnType<typeof makePace>;

/**
 * Keeps one tenant's bulk work from taking all that a process and its store can do while others work here. `presence`: of the
 * process, where more than this work counts.
 */
export function makePace(now: () => number = () => performance.now(), presence: Presence = makePresence(now)) {
  const effort = makeEffort(now);
  const turns = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: 1 });
  const jobs = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: JOBS_AT_ONCE });
  const { begins, hasOthers } = presence;
  const inner = new Map<number, { ofJobs: Shares; ofTenants: Shares }>();
  const innerAt = (depth: number) => {
    const shares = inner.get(depth) ?? {
      ofJobs: makeShares({ size: Number.POSITIVE_INFINITY, perOwner: INNER_AT_ONCE.job }),
      ofTenants: makeShares({ size: INNER_AT_ONCE.all, perOwner: INNER_AT_ONCE.tenant }),
    };
    inner.set(depth, shares);
    return shares;
  };
  return {
    /** Notes that work of the tenant begins. */
    begins,
    /** Whether others work here. */
    hasOthers,
    /**
     * Waits until a job of the tenant on a queue may begin, and returns how its end is noted. A few jobs that share the
     * tenant's parts do as much as many, and begin and resume less often. @throws the signal's reason.
     */
    enterJob(tenantId: string, queue: string, signal: AbortSignal): Promise<() => void> {
      const isMuch = hasOthers(tenantId) && effort.isHigh(tenantId);
      return jobs.enter(`${queue}:${tenantId}`, signal, isMuch ? JOBS_AT_ONCE : Number.POSITIVE_INFINITY);
    },
    /**
     * Waits until a run that a job makes inside of itself may begin, and returns how its end is noted. Each depth has places of
     * its own: a run holds its place while it waits for those below it. @throws the signal's reason.
     */
    async enterInner(
      { tenantId, jobId, depth }: { tenantId: string; jobId: string; depth: number },
      signal: AbortSignal,
    ): Promise<() => void> {
      const { ofJobs, ofTenants } = innerAt(depth);
      const leaveJob = await ofJobs.enter(jobId, signal);
      try {
        const leaveTenant = await ofTenants.enter(tenantId, signal, hasOthers(tenantId) ? INNER_SHARED : undefined);
        return () => {
          leaveTenant();
          leaveJob();
        };
      } catch (error) {
        leaveJob();
        throw error;
      }
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

/** Processor time that an owner may have used at once, in ms, and how much of it comes back in a ms. */
const AT_ONCE_MS = 300;
const REGAINED = 0.1;
/** Owners that are remembered, the latest ones. */
const MAX_OWNERS = 10_000;

/** Who has used much processor time of late: more than some at once, and then more than a tenth of the time. */
export function makeEffort(now: () => number = () => performance.now()) {
  const owners = new Map<string, { usedMs: number; at: number }>();
  const usedBy = (owner: string) => {
    const { usedMs = 0, at = 0 } = owners.get(owner) ?? {};
    return Math.max(0, usedMs - (now() - at) * REGAINED);
  };
  return {
    add(owner: string, ms: number): void {
      const usedMs = usedBy(owner) + ms;
      owners.delete(owner); // to the end: the map keeps the order
      owners.set(owner, { usedMs, at: now() });
      const [oldest] = owners.keys();
      if (oldest !== undefined && owners.size > MAX_OWNERS) owners.delete(oldest);
    },
    isHigh: (owner: string) => usedBy(owner) > AT_ONCE_MS,
  };
}
