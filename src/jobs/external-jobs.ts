import { type ErrorView, unavailable } from "../lib/errors.ts";
import type { JobRecord } from "../store/job-record.ts";
import type { JobStore } from "../store/job-store.ts";
import { isStoreUnavailable } from "../store/store-errors.ts";
import { isDuplicateKey } from "../store/writes.ts";
import { type EndedJob, earlyEndOf, endedNow } from "./claim.ts";
import type { Notifications } from "./notify.ts";
import type { QueueDefinition } from "./queues.ts";
import type { Rejections } from "./reject.ts";
import { newRecord, type Submission } from "./submit.ts";

/** A job that no worker runs. It waits for the work of another part, which also ends it. */
export type ExternalJob = Pick<Submission, "title" | "startedBy" | "keyId"> & {
  queue: QueueDefinition;
  tenantId: string;
  jobId: string;
  subject: Record<string, string>;
  /** True if the caller retries with this id. Otherwise, an insert whose outcome is unknown is marked as failed. */
  isRetried: boolean;
};

/** Jobs whose record waits without a BullMQ job of their own, so that any number of them can wait for days. */
export function makeExternalJobs(
  store: JobStore,
  {
    notifications,
    rejections,
    ended,
  }: { notifications: Notifications; rejections: Rejections; ended(job: EndedJob): void },
) {
  return {
    /** Accepts a waiting job unless it exists already. Nothing is put on a queue for it. */
    async hold({ queue, tenantId, jobId, subject, isRetried, ...shown }: ExternalJob): Promise<JobRecord> {
      const record: JobRecord = {
        ...newRecord(queue, { tenantId, jobId, subject, ...shown }),
        payload: {},
        status: "awaiting",
        progress: { stage: "collecting", done: 0, total: 1 },
        isInteractive: false,
        priority: 0,
      };
      try {
        await store.insert(record);
        return record;
      } catch (error) {
        const there = isDuplicateKey(error) ? await store.find(tenantId, jobId) : null;
        if (there) return there;
        if (isStoreUnavailable(error) && !isRetried) rejections.rejectLater(record, unavailable("The store"));
        throw error;
      }
    },
    /** Returns which of these jobs still wait. */
    stillWaiting: store.findAwaiting,
    /** Ends a waiting job with its result or its error. Returns false if it has ended or was cancelled. */
    async end(
      jobId: string,
      { guard = [], ...end }: ({ result: unknown } | { error: ErrorView }) & Pick<JobRecord, "guard">,
    ): Promise<boolean> {
      const isDone = "result" in end;
      const early = isDone ? earlyEndOf(end.result) : undefined;
      const whole = isDone ? { progress: { stage: "completed", done: 1, total: 1 } } : {};
      const outcome = { ...end, ...(early === undefined ? whole : { "progress.stage": early }) };
      const status = isDone ? "completed" : "failed";
      const job = await store.change(
        { jobId, from: ["awaiting"] },
        {
          $set: { ...outcome, status, ...endedNow() },
          $inc: { lastEventId: 1 },
          ...(guard.length > 0 && { $push: { guard: { $each: guard } } }),
        },
      );
      if (!job) return false;
      notifications.changed(job);
      ended(job);
      return true;
    },
  };
}
