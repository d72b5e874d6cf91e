import { notFound } from "../errors.ts";
import type { JobStore } from "../store/job-store.ts";
import type { Announcements } from "./announce.ts";
import { type JobEvent, type JobRecord, toJobView } from "./job-record.ts";
import { isFinal } from "./job-state.ts";

/** An announcement may be lost with Redis; the record is read anyway after this time, in ms. */
const POLL_MS = 2_000;

export type FollowDeps = { store: JobStore; announcements: Announcements };

/**
 * Waits until a job has ended, for `timeoutMs` at most, and answers its record as it is then. The record decides, an
 * announcement only says when to look.
 * @throws AppError `not_found` for a job that the tenant does not have; the signal's reason when the caller goes away.
 */
export async function waitForJob(
  deps: FollowDeps,
  tenantId: string,
  jobId: string,
  options: { timeoutMs: number; signal: AbortSignal },
): Promise<JobRecord> {
  const deadline = performance.now() + options.timeoutMs;
  const changes = await watch(deps.announcements, jobId);
  try {
    for (;;) {
      const record = await read(deps.store, tenantId, jobId);
      const leftMs = deadline - performance.now();
      if (isFinal(record.status) || leftMs <= 0) return record;
      await changes.next(Math.min(leftMs, POLL_MS), options.signal);
    }
  } finally {
    changes.stop();
  }
}

/**
 * A job's events from now on, or from after `afterId`: each `step`, `progress` as it changes, and at last `end` with the
 * job's view. Progress between two looks at the record is folded into the latest one.
 */
export async function* followJob(
  deps: FollowDeps,
  tenantId: string,
  jobId: string,
  options: { afterId?: number; signal: AbortSignal },
): AsyncGenerator<JobEvent> {
  let lastId = options.afterId ?? -1;
  const changes = await watch(deps.announcements, jobId);
  try {
    while (!options.signal.aborted) {
      const record = await read(deps.store, tenantId, jobId);
      for (const { id, data } of record.steps ?? []) {
        if (id <= lastId) continue;
        lastId = id;
        yield { id, type: "step", data };
      }
      if (isFinal(record.status)) {
        yield { id: record.lastEventId, type: "end", data: toJobView(record) };
        return;
      }
      if (record.lastEventId > lastId) {
        lastId = record.lastEventId;
        yield { id: lastId, type: "progress", data: { status: record.status, ...record.progress } };
      }
      await changes.next(POLL_MS, options.signal);
    }
  } finally {
    changes.stop();
  }
}

async function read(store: JobStore, tenantId: string, jobId: string): Promise<JobRecord> {
  const record = await store.find(tenantId, jobId);
  if (!record) throw notFound("job");
  return record;
}

type Changes = {
  /** Resolves at the next change, at once when there was one since the last call, or after `timeoutMs`. */
  next(timeoutMs: number, signal: AbortSignal): Promise<void>;
  stop(): void;
};

async function watch(announcements: Announcements, jobId: string): Promise<Changes> {
  let hasChanged = false;
  let wake: (() => void) | undefined;
  const stop = await announcements.onChange(jobId, () => {
    hasChanged = true;
    wake?.();
  });
  return {
    stop,
    async next(timeoutMs, signal) {
      signal.throwIfAborted();
      if (!hasChanged) await sleepUntil((wakeUp) => (wake = wakeUp), timeoutMs, signal);
      wake = undefined;
      hasChanged = false;
      signal.throwIfAborted();
    },
  };
}

function sleepUntil(onWake: (wake: () => void) => void, timeoutMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, timeoutMs);
    signal.addEventListener("abort", done, { once: true });
    onWake(done);
  });
}
