import { AppError } from "../lib/errors.ts";
import type { JobRecord } from "../store/job-record.ts";
import { isFinal, statesBefore } from "../store/job-state.ts";
import type { JobStore } from "../store/job-store.ts";
import { type EndedJob, endedNow } from "./claim.ts";
import { readJob } from "./follow.ts";
import type { Notifications } from "./notify.ts";
import type { QueueClient } from "./queue-client.ts";

export type CancelDeps = {
  store: JobStore;
  queues: QueueClient;
  notifications: Notifications;
  /** Called with a job that has ended here. */
  ended(job: EndedJob): void;
  onError(error: unknown): void;
};

/**
 * Cancels a job: one that waits at once, one that runs at its next safe point. The request is on the record, so it holds
 * also when the announcement to the worker is lost.
 * @throws AppError `not_found`; `wrong_state` when the job has ended.
 */
export async function cancelJob(deps: CancelDeps, tenantId: string, jobId: string): Promise<JobRecord> {
  const record = await readJob(deps.store.find, tenantId, jobId);
  const cancelRequestedAt = new Date();
  const waiting = statesBefore("cancelled").filter((state) => state !== "running");
  const cancelled = await deps.store.change(
    { jobId, from: waiting },
    {
      $set: { status: "cancelled", cancelRequestedAt, ...endedNow() },
      $unset: { checkAt: "", notBefore: "" },
      $inc: { lastEventId: 1 },
    },
  );
  if (cancelled) {
    deps.notifications.changed(cancelled);
    deps.ended(cancelled);
    // Redis may be unavailable: a worker that is given the job later finds its record closed.
    await deps.queues.remove(record.queue, jobId).catch(deps.onError);
    return cancelled;
  }
  const requested = await deps.store.change({ jobId, from: ["running"] }, { $set: { cancelRequestedAt } });
  if (requested) {
    deps.notifications.cancel(jobId);
    return requested;
  }
  const { status } = await readJob(deps.store.find, tenantId, jobId);
  if (!isFinal(status)) return cancelJob(deps, tenantId, jobId); // another worker took it in between
  throw new AppError("wrong_state", "The job has ended already.", { details: { status } });
}
