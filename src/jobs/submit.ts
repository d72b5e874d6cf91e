import { defined } from "../lib/defined.ts";
import { unavailable } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import { currentDepth, currentFound, currentNesting, currentRequestId } from "../net/call-scope.ts";
import { currentTrace } from "../observe/tracing.ts";
import type { JobRecord, StepOfRun } from "../store/job-record.ts";
import type { JobStore } from "../store/job-store.ts";
import { isStoreUnavailable } from "../store/store-errors.ts";
import { isDuplicateKey } from "../store/writes.ts";
import { CHECK_QUEUED_AFTER_MS } from "./claim.ts";
import { fairPriority } from "./fair-priority.ts";
import type { QueueClient } from "./queue-client.ts";
import type { QueueDefinition } from "./queues.ts";
import type { Rejections } from "./reject.ts";

export type Submission = {
  tenantId: string;
  /** The job's id if the caller chose it beforehand; otherwise a new id is made. */
  jobId?: string;
  /** Ids in the payload, except those of job and tenant. */
  ids: Record<string, string>;
  /** Ids of what the job makes, and where, for the 202 body and as filters of lists. */
  subject: Record<string, string>;
  /** Title of the job: its subject in a few words. */
  title?: string;
  /** The first line of its input. */
  input?: string | undefined;
  /** The subject and the key of the caller. */
  startedBy?: string;
  keyId?: string;
  /** The job whose work submits it and waits for its end. */
  parentJobId?: string | undefined;
  /** The step of its run that does. */
  parentStep?: StepOfRun | undefined;
  /** Number of its steps, if that is known beforehand. */
  steps?: number;
  isInteractive: boolean;
};

/** Longest title of a job, in characters. */
const MAX_TITLE = 200;

/** The fields of a new job's record that do not depend on how it runs. */
export function newRecord(
  { kind, name: queue }: QueueDefinition,
  {
    tenantId,
    jobId: _id,
    subject,
    title,
    input,
    startedBy,
    keyId,
  }: Pick<Submission, "tenantId" | "subject" | "title" | "input" | "startedBy" | "keyId"> & { jobId: string },
) {
  const now = new Date();
  return {
    ...defined({ title: title?.slice(0, MAX_TITLE).toWellFormed(), input, startedBy, keyId }),
    ...defined({ requestId: currentRequestId(), guard: currentFound() }),
    _id,
    tenantId,
    kind,
    queue,
    subject,
    attempts: 0,
    failures: 0,
    createdAt: now,
    updatedAt: now,
    lastEventId: 0,
  };
}

export type SubmitDeps = {
  store: Pick<JobStore, "insert" | "replaceRefused">;
  queues: Pick<QueueClient, "add">;
  rejections: Pick<Rejections, "reject" | "rejectLater">;
  countBefore(tenantId: string, queue: string): number;
  /** Whether webhooks of the tenant are told of the end of its jobs. */
  isAnnounced(tenantId: string): Promise<boolean>;
};

/**
 * Accepts a job: the record first, then the BullMQ job under the same id. Once this resolves, the job survives the loss of
 * Redis. When Redis or the store does not take it, the record is taken back, so that what was refused is neither run nor kept. When a
 * worker has it by then, Redis took it and only its answer was lost: then it is accepted.
 * @throws AppError `unavailable` when Redis or the store does not take it; ZodError when the payload is not of its schema.
 */
export async function submitJob(
  deps: SubmitDeps,
  queue: QueueDefinition,
  {
    tenantId,
    jobId = newId("job"),
    ids,
    subject,
    isInteractive,
    steps = 0,
    parentJobId,
    parentStep,
    ...shown
  }: Submission,
): Promise<JobRecord> {
  const payload = queue.payload.parse({ v: 1, jobId, tenantId, ...ids }) as Record<string, unknown>; // a strict object of ids
  const record: JobRecord = {
    ...newRecord(queue, { tenantId, jobId, subject, ...shown }),
    payload,
    status: "queued",
    progress: { stage: "queued", done: 0, total: steps },
    isInteractive,
    priority: fairPriority({ backlog: deps.countBefore(tenantId, queue.name), isInteractive }),
    checkAt: new Date(Date.now() + CHECK_QUEUED_AFTER_MS),
    ...((await deps.isAnnounced(tenantId)) ? { isAnnounced: true } : {}),
    ...defined({ trace: currentTrace(), depth: currentDepth() || undefined, nesting: currentNesting() || undefined }),
    ...(parentJobId === undefined ? {} : { parentJobId, unsettledSince: new Date(), ...defined({ parentStep }) }),
  };
  try {
    await deps.store.insert(record).catch(async (error: unknown) => {
      if (!isDuplicateKey(error) || !(await deps.store.replaceRefused(record))) throw error;
    });
  } catch (error) {
    if (isStoreUnavailable(error)) deps.rejections.rejectLater(record, unavailable("The store"));
    throw error;
  }
  try {
    await deps.queues.add(queue.name, { jobId, payload, priority: record.priority });
  } catch (error) {
    if (await deps.rejections.reject(record, error)) throw error;
  }
  return record;
}

/** The job of a call that may be made again: all attempts at the call have its id. */
export type ReservedJob = {
  readonly jobId: string;
  /** Whether an earlier attempt may have made the job. */
  readonly mayBeThere: boolean;
  /**
   * How far this attempt has come: it needs no job; the job may be there; it is there, and goes on; it has failed, and another
   * call may make one of its own.
   */
  state: "unused" | "sought" | "accepted" | "failed";
};

/** The job of an earlier attempt, which nothing takes back any more; null when there is none. From now on the job may be there. */
export async function seekReserved(
  jobs: Pick<JobStore, "adopt">,
  tenantId: string,
  reserved: ReservedJob,
): Promise<JobRecord | null> {
  if (reserved.state === "unused") reserved.state = "sought";
  const job = reserved.mayBeThere ? await jobs.adopt(tenantId, reserved.jobId) : null;
  if (job) reserved.state = "accepted";
  return job;
}

/**
 * Accepts the work of a job under its id, unless another attempt has; to be called in its tenant's turn.
 * @throws AppError `too_many_concurrent`; what `accept` throws.
 */
export async function acceptReserved(
  {
    jobs,
    quotas,
  }: { jobs: Pick<JobStore, "adopt">; quotas: { check(tenantId: string, quota: "openJobs"): Promise<unknown> } },
  { tenantId, reserved }: { tenantId: string; reserved: ReservedJob | undefined },
  accept: (jobId: string) => Promise<{ job: JobRecord }>,
): Promise<JobRecord> {
  const known = reserved && (await seekReserved(jobs, tenantId, reserved));
  if (known) return known;
  await quotas.check(tenantId, "openJobs");
  const accepting = accept(reserved?.jobId ?? newId("job"));
  if (!reserved) return (await accepting).job;
  const { job } = await accepting.catch(async (error: unknown) => {
    const there = isDuplicateKey(error) ? await jobs.adopt(tenantId, reserved.jobId) : null;
    if (!there) throw error;
    return { job: there }; // another attempt was faster
  });
  reserved.state = "accepted";
  return job;
}
