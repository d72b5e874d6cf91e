import { setTimeout as delay } from "node:timers/promises";
import type { JobStore, JobSummaryRecord } from "../store/job-store.ts";
import type { Notifications } from "./notify.ts";

/** Changes of a tenant's jobs are gathered for this time, in ms, so that a busy tenant costs a few reads a second. */
const GATHER_MS = 250;
/** Jobs that are reported of one gathering; a follower that misses some reads the list. */
const MAX_REPORTED = 100;

/** Jobs of a tenant that have changed, as they are now; `isPartial` when more of them have. */
export type JobChanges = { jobs: JobSummaryRecord[]; isPartial: boolean };

/** The changes of a tenant's jobs from now on, until the signal aborts. One that is lost with Redis is not made up for. */
export async function* followTenant(
  { store, notifications }: { store: Pick<JobStore, "summaries">; notifications: Notifications },
  tenantId: string,
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
      await delay(GATHER_MS, undefined, { signal }).catch(() => undefined);
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
