import { setTimeout as delay } from "node:timers/promises";
import { notFound } from "../lib/errors.ts";
import type { JobRecord } from "../store/job-record.ts";
import { isFinal } from "../store/job-state.ts";
import type { JobStore } from "../store/job-store.ts";
import { type JobEvent, toJobView, toProgressView } from "./job-view.ts";
import type { Notifications } from "./notify.ts";

/** A notification may be lost with Redis, so the record is read at least this often, in ms. */
const POLL_MS = 2_000;

/** `read` returns a job's record, or null if there is none. It should be shared, since many may follow one job. */
export type FollowDeps = { read: JobStore["find"]; notifications: Notifications };

export type WaitOptions = {
  /** Longest wait, in ms; without it the wait lasts until the signal aborts. */
  timeoutMs?: number;
  signal: AbortSignal;
  /** Returns true to end the wait before the job has ended. Called at each change and every 2 s. */
  isEnough?(record: JobRecord): Promise<boolean> | boolean;
};

/**
 * Waits until a job has ended, and returns its record as it is then. The record decides; an announcement only says when to
 * look.
 * @throws AppError `not_found` for a job that the tenant does not have; the signal's reason when it aborts.
 */
export async function waitForJob(
  deps: FollowDeps,
  tenantId: string,
  jobId: string,
  { timeoutMs = Number.POSITIVE_INFINITY, signal, isEnough }: WaitOptions,
): Promise<JobRecord> {
  const deadline = performance.now() + timeoutMs;
  const changes = await watchJob(deps.notifications, tenantId, jobId);
  try {
    for (;;) {
      const record = await readJob(deps.read, tenantId, jobId);
      const leftMs = deadline - performance.now();
      if (isFinal(record.status) || leftMs <= 0 || (await isEnough?.(record))) return record;
      await changes.next(Math.min(leftMs, POLL_MS), signal);
    }
  } finally {
    changes.stop();
  }
}

export type FollowOptions = {
  /** The last event that the follower has seen. */
  afterId?: number;
  /** Least time between two reads of the record, in ms. Events in between arrive together in the next batch. */
  everyMs?: number;
  signal: AbortSignal;
};

/**
 * Yields each `step` after `afterId`, the latest `progress` at each read of the record, and finally `end` with the job's view.
 */
export async function* followJob(
  deps: FollowDeps,
  tenantId: string,
  jobId: string,
  { afterId = -1, everyMs = 0, signal }: FollowOptions,
): AsyncGenerator<readonly JobEvent[]> {
  let lastId = afterId;
  const changes = await watchJob(deps.notifications, tenantId, jobId);
  try {
    while (!signal.aborted) {
      const notBefore = performance.now() + everyMs;
      const record = await readJob(deps.read, tenantId, jobId);
      const steps = (record.steps ?? []).filter(({ id }) => id > lastId);
      const events: JobEvent[] = steps.map(({ id, data }) => ({ id, type: "step", data }));
      if (isFinal(record.status)) {
        yield [...events, { id: record.lastEventId, type: "end", data: toJobView(record) }];
        return;
      }
      if (record.lastEventId > (steps.at(-1)?.id ?? lastId))
        events.push({
          id: record.lastEventId,
          type: "progress",
          data: { status: record.status, ...toProgressView(record) },
        });
      lastId = events.at(-1)?.id ?? lastId;
      if (events.length > 0) yield events;
      await changes.next(POLL_MS, signal);
      const waitMs = notBefore - performance.now();
      if (waitMs > 0) await delay(waitMs, undefined, { signal }).catch(() => undefined); // the follower leaves
    }
  } finally {
    changes.stop();
  }
}

/** @throws AppError `not_found`. */
export async function readJob(read: JobStore["find"], tenantId: string, jobId: string): Promise<JobRecord> {
  const record = await read(tenantId, jobId);
  if (!record) throw notFound("job");
  return record;
}

/** The changes of a job. `stop` ends the watch. */
export async function watchJob(notifications: Notifications, tenantId: string, jobId: string) {
  let change = new AbortController();
  const stop = await notifications.onChange(tenantId, jobId, () => change.abort());
  return {
    stop,
    /** Resolves at the next change, or after `timeoutMs`. Resolves at once if there was a change since the last call. */
    async next(timeoutMs: number, signal: AbortSignal): Promise<void> {
      const until = AbortSignal.any([signal, change.signal]);
      await delay(timeoutMs, undefined, { signal: until }).catch(() => undefined); // it has changed, or the caller has left
      signal.throwIfAborted();
      if (change.signal.aborted) change = new AbortController();
    },
  };
}
