import { setTimeout as delay } from "node:timers/promises";
import type { JobStore, JobSummaryRecord } from "../store/job-store.ts";
import type { Notifications } from "./notify.ts";

/**
 * Changes of a tenant's jobs are gathered for this time, in ms, so that a busy tenant costs a few reads a second; beyond some
 * followers in proportion longer, up to a limit, since each of them is sent every change.
 */
const GATHER_MS = 250;
const MANY_FOLLOWERS = 8;
const MAX_GATHER_MS = 2_000;
/** Maximum jobs reported at once. A follower that misses some reads the list. */
const MAX_REPORTED = 100;

/** Changed jobs of a tenant in their present state. `isPartial`: more jobs have changed than are listed. */
export type JobChanges = { jobs: readonly JobSummaryRecord[]; isPartial: boolean };

type Deps = { store: Pick<JobStore, "summaries">; notifications: Notifications };

/** State that all followers of a tenant share: the number of gatherings so far and the changes of the last one. */
type Feed = {
  followers: number;
  count: number;
  latest: JobChanges;
  changed: PromiseWithResolvers<void>;
  failure?: unknown;
  left: AbortController;
};

/**
 * Makes the follower of tenants' jobs. Each process gathers and reads changes once, for any number of followers. A change whose
 * notification is lost with Redis is not reported later.
 */
export function makeFollowTenant(deps: Deps) {
  const feeds = new Map<string, Feed>();

  const close = (tenantId: string, feed: Feed) => {
    if (feeds.get(tenantId) === feed) feeds.delete(tenantId);
    feed.left.abort();
  };
  const fill = async (tenantId: string, feed: Feed) => {
    const waitMs = () => gatherMs(feed.followers);
    try {
      for await (const changes of gather(deps, { tenantId, waitMs }, feed.left.signal)) {
        feed.latest = changes;
        feed.count += 1;
        wakeFollowers(feed);
      }
    } catch (error) {
      feed.failure = error;
      close(tenantId, feed);
      wakeFollowers(feed);
    }
  };
  const open = (tenantId: string): Feed => {
    const latest = { jobs: [], isPartial: false };
    const feed = {
      followers: 0,
      count: 0,
      latest,
      changed: Promise.withResolvers<void>(),
      left: new AbortController(),
    };
    feeds.set(tenantId, feed);
    void fill(tenantId, feed); // the followers receive its failure
    return feed;
  };
  /**
   * The changes of a tenant's jobs from now on, until the signal aborts. A follower that is too slow for some gets
   * the latest, as a part. @throws what the read of the changes throws.
   */
  return async function* followTenant(tenantId: string, signal: AbortSignal): AsyncGenerator<JobChanges> {
    const feed = feeds.get(tenantId) ?? open(tenantId);
    const leave = () => wakeFollowers(feed);
    signal.addEventListener("abort", leave, { once: true });
    feed.followers += 1;
    try {
      for (let seen = feed.count; ; ) {
        while (feed.count === seen && feed.failure === undefined && !signal.aborted) await feed.changed.promise;
        if (signal.aborted) return;
        if (feed.failure !== undefined) throw feed.failure;
        const { count, latest } = feed;
        const isBehind = count > seen + 1;
        seen = count;
        yield isBehind ? { ...latest, isPartial: true } : latest;
      }
    } finally {
      signal.removeEventListener("abort", leave);
      feed.followers -= 1;
      if (feed.followers === 0) close(tenantId, feed);
    }
  };
}

function wakeFollowers(feed: Feed): void {
  feed.changed.resolve();
  feed.changed = Promise.withResolvers<void>();
}

/** How long changes are gathered for this many followers, in ms. */
function gatherMs(followers: number): number {
  return Math.min(GATHER_MS * Math.max(1, followers / MANY_FOLLOWERS), MAX_GATHER_MS);
}

/** The changes of a tenant's jobs, gathered from time to time, until the signal aborts. */
async function* gather(
  { store, notifications }: Deps,
  { tenantId, waitMs }: { tenantId: string; waitMs(): number },
  signal: AbortSignal,
): AsyncGenerator<JobChanges> {
  let changed = new Set<string>();
  let isPartial = false;
  let wake: () => void = () => undefined;
  const stop = await notifications.onTenantChange(tenantId, (jobId) => {
    if (changed.size < MAX_REPORTED) changed.add(jobId);
    else isPartial ||= !changed.has(jobId);
    wake();
  });
  const leave = () => wake();
  signal.addEventListener("abort", leave);
  try {
    while (!signal.aborted) {
      if (changed.size === 0) {
        const change = Promise.withResolvers<void>();
        wake = change.resolve;
        await change.promise;
      }
      await delay(waitMs(), undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      const gathered = { ids: [...changed], isPartial };
      changed = new Set();
      isPartial = false;
      yield { jobs: await store.summaries(tenantId, gathered.ids), isPartial: gathered.isPartial };
    }
  } finally {
    signal.removeEventListener("abort", leave);
    stop();
  }
}
