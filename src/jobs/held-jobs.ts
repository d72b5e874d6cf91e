import { type ErrorView, unavailable } from "../errors.ts";
import { isStoreUnavailable } from "../store/connect.ts";
import type { JobRecord } from "../store/job-record.ts";
import { statesBefore } from "../store/job-state.ts";
import type { JobStore } from "../store/job-store.ts";
import { isDuplicateKey } from "../store/writes.ts";
import type { Announcements } from "./announce.ts";
import { KEEP_ENDED_MS } from "./claim.ts";
import type { QueueDefinition } from "./define-queue.ts";
import type { Refusals } from "./refuse.ts";

/** A job that no worker runs: it waits for something that others bring about, and is ended by them. */
export type HeldJob = {
  queue: QueueDefinition;
  tenantId: string;
  jobId: string;
  subject: Record<string, string>;
  /** Who asks tries again under the same id until the job is there. Else one that the store takes unseen is refused. */
  isRetried: boolean;
};

export type HeldJobs = {
  /** Accepts a job that waits, unless it is there. Nothing is put on a queue for it. */
  hold(job: HeldJob): Promise<JobRecord>;
  /** Which of these jobs still wait. */
  stillWaiting(jobIds: readonly string[]): Promise<Set<string>>;
  /** Ends a job that waits, with its result or its error; false when it has ended already, or was cancelled. */
  end(jobId: string, end: { result: unknown } | { error: ErrorView }): Promise<boolean>;
};

/** Jobs whose record waits without a BullMQ job of their own, so that any number of them can wait for days. */
export function makeHeldJobs(
  store: JobStore,
  { announcements, refusals }: { announcements: Announcements; refusals: Refusals },
): HeldJobs {
  return {
    async hold({ queue, tenantId, jobId, subject, isRetried }) {
      const now = new Date();
      const record: JobRecord = {
        _id: jobId,
        tenantId,
        kind: queue.kind,
        queue: queue.name,
        payload: {},
        subject,
        status: "awaiting",
        progress: { stage: "collecting", done: 0, total: 1 },
        isInteractive: false,
        priority: 0,
        attempts: 0,
        failures: 0,
        createdAt: now,
        updatedAt: now,
        lastEventId: 0,
      };
      try {
        await store.insert(record);
        return record;
      } catch (error) {
        const there = isDuplicateKey(error) ? await store.find(tenantId, jobId) : null;
        if (there) return there;
        if (isStoreUnavailable(error) && !isRetried) refusals.refuseLater(record, unavailable("The store"));
        throw error;
      }
    },
    stillWaiting: (jobIds) => store.findAwaiting(jobIds),
    async end(jobId, end) {
      const now = new Date();
      const outcome =
        "result" in end
          ? {
              status: "completed" as const,
              result: end.result,
              progress: { stage: "completed", done: 1, total: 1 },
            }
          : { status: "failed" as const, error: end.error };
      const ended = await store.change(
        { jobId, from: statesBefore(outcome.status).filter((state) => state === "awaiting") },
        {
          $set: { ...outcome, finishedAt: now, updatedAt: now, expireAt: new Date(now.getTime() + KEEP_ENDED_MS) },
          $inc: { lastEventId: 1 },
        },
      );
      if (ended) announcements.changed(jobId);
      return ended !== null;
    },
  };
}
