import { AppError, toErrorView } from "../errors.ts";
import { newId } from "../ids.ts";
import type { JobStore } from "../store/job-store.ts";
import type { PayloadOf, QueueDefinition } from "./define-queue.ts";
import { fairPriority } from "./fair-priority.ts";
import type { JobRecord } from "./job-record.ts";
import { statesBefore } from "./job-state.ts";
import type { QueueClient } from "./queue-client.ts";

/** A queued job that reconcile finds this old is looked for in BullMQ, in ms. */
export const CHECK_QUEUED_AFTER_MS = 10_000;

export type Submission<Q extends QueueDefinition> = {
  tenantId: string;
  /** The job's id, when the caller had to know it before; else a new one. */
  jobId?: string;
  payload: (jobId: string) => PayloadOf<Q>;
  /** Ids of what the job makes, for the 202 body. */
  subject: Record<string, string>;
  isInteractive: boolean;
};

export type SubmitDeps = {
  store: JobStore;
  queues: QueueClient;
  countBefore(tenantId: string, queue: string): number;
};

/**
 * Accepts a job: the record first, then the BullMQ job under the same id. Once this resolves, the job survives the loss of
 * Redis. When Redis does not take it, the record is closed as failed, so that what was refused is never run.
 * @throws AppError `unavailable` when Redis or the store does not take it; ZodError when the payload is not of its schema.
 */
export async function submitJob<Q extends QueueDefinition>(
  deps: SubmitDeps,
  queue: Q,
  submission: Submission<Q>,
): Promise<JobRecord> {
  const { tenantId, subject, isInteractive } = submission;
  const jobId = submission.jobId ?? newId("job");
  const payload = queue.payload.parse(submission.payload(jobId)) as Record<string, unknown>; // a strict object of ids
  const now = new Date();
  const record: JobRecord = {
    _id: jobId,
    tenantId,
    kind: queue.kind,
    queue: queue.name,
    payload,
    subject,
    status: "queued",
    progress: { stage: "queued", done: 0, total: 0 },
    isInteractive,
    priority: fairPriority({ backlog: deps.countBefore(tenantId, queue.name), isInteractive }),
    attempts: 0,
    failures: 0,
    createdAt: now,
    updatedAt: now,
    checkAt: new Date(now.getTime() + CHECK_QUEUED_AFTER_MS),
    lastEventId: 0,
  };
  await deps.store.insert(record);
  try {
    await deps.queues.add(queue.name, { jobId, payload, priority: record.priority });
  } catch (error) {
    await closeRefused(deps.store, jobId, error);
    throw error;
  }
  return record;
}

/**
 * What came of a job that could not be enqueued: failed, unless a worker has it already (Redis took it, but its answer was
 * lost); then it runs, and its result is thrown away by the caller who heard 503.
 */
async function closeRefused(store: JobStore, jobId: string, error: unknown): Promise<void> {
  const view = toErrorView(error instanceof AppError ? error : undefined);
  await store.change(
    { jobId, from: statesBefore("failed").filter((state) => state === "queued") },
    { $set: { status: "failed", error: view, finishedAt: new Date() }, $unset: { checkAt: "" } },
  );
}
