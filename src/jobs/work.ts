import { AppError, notFound } from "../lib/errors.ts";
import type { Logger } from "../observe/logger.ts";
import type { JobProgress, JobRecord } from "../store/job-record.ts";
import { isFinal } from "../store/job-state.ts";
import type { StoredCaller } from "../store/key-store.ts";
import { isStoreUnavailable } from "../store/store-errors.ts";
import { isDuplicateKey } from "../store/writes.ts";
import type { Jobs } from "./jobs.ts";
import type { QueueDefinition } from "./queues.ts";
import type { Submission } from "./submit.ts";
import { sweepEach } from "./sweep-each.ts";

/** What a worker's shell gives to the work of a job. */
export type WorkContext = {
  tenantId: string;
  jobId: string;
  /** The record that the work is about. */
  recordId: string;
  /** Whether a failure of this attempt fails the job. */
  isLastAttempt: boolean;
  /** Aborts when the job is cancelled, runs too long, goes to another worker, or the worker stops. */
  signal: AbortSignal;
  logger: Logger;
  /** Reports how far the work is. Throws the signal's reason when the job is not ours to run any more. */
  progress(progress: JobProgress): Promise<void>;
  /**
   * Returns when the job is ours to run. Called before a failure is recorded as the end of something: a worker that was frozen
   * may have lost its job, and what failed may be its connections. Throws as `progress` does.
   */
  confirm(): Promise<void>;
  /** Reports to followers of the job what happened in it: a few fields, no contents; and how far the work is then. Throws as `progress` does. */
  step(data: Record<string, unknown>, progress?: JobProgress): Promise<void>;
  /**
   * Runs a part of the work that keeps the store busy, as the writing of many records: while other tenants work here, one such
   * part of a tenant at a time, with pauses. Throws what `part` throws, and the signal's reason.
   */
  share<T>(part: () => Promise<T>): Promise<T>;
  /**
   * Makes a run inside of this job's own, at a depth that is greater than that of the run which waits for it, as soon as few
   * enough are under way there. Throws what `run` throws, and the signal's reason.
   */
  inner<T>(at: { depth: number; signal: AbortSignal }, run: () => Promise<T>): Promise<T>;
};

/** Who has work repeated, and the id of the job that is to do it. */
export type RepeatRequest = { caller: StoredCaller; jobId: string; isInteractive: boolean };

/** What the record of every work has. */
export type WorkRecord = { _id: string; tenantId: string; jobId: string };

/**
 * One kind of durable work: a record in the store, and a job that brings it to its end. A kind says here what is its own;
 * acceptance, cancellation and the sweep of what was left behind are the same for all.
 */
export type Work<R extends WorkRecord = WorkRecord> = {
  queue: QueueDefinition;
  /** The field of payloads and of 202 bodies that holds the record's id, as `runId`. */
  idField: string;
  /** Does the work, from where an earlier attempt left it; what it returns is the job's result. It may run twice at once. */
  run(context: WorkContext): Promise<unknown>;
  find(tenantId: string, recordId: string): Promise<R | null>;
  /** Open records of all tenants without a change since `before`. */
  unfinished(page: { before: Date; limit: number }): Promise<R[]>;
  /** Notes that an open record was looked at, whose job is open too: the next sweep comes to others first. */
  touch(record: R, job: JobRecord): Promise<unknown>;
  /**
   * Does the work of a job again that has failed or was cancelled, as a job of its own; absent of work that cannot be repeated so.
   * @throws AppError as the request for such work.
   */
  repeat?(record: R, request: RepeatRequest): Promise<{ job: JobRecord }>;
  /** The message to a callback about the end of a job; absent: `job.completed` and so on, with the ids of the job. */
  report?(job: JobRecord): Promise<object>;
  /** Undoes the record of a job that was not accepted. */
  reject(record: R, error: unknown): Promise<unknown>;
  /** Ends a record whose job ended without it (cancelled, given up, failed for good), or never existed (null). May run twice. */
  closeOrphan(record: R, job: JobRecord | null): Promise<unknown>;
};

/** Checks a kind of work, and forgets the type of its records: each is handed back to the work that it came from. */
export function defineWork<R extends WorkRecord>(work: Work<R>): Work {
  return work;
}

/** A store of records that a work may take as it is: a record whose job was not accepted is removed. */
type WorkStore<R extends WorkRecord> = {
  get(tenantId: string, recordId: string): Promise<R | null>;
  unfinished(page: { before: Date; limit: number }): Promise<R[]>;
  touch(tenantId: string, recordId: string): Promise<unknown>;
  remove(tenantId: string, recordId: string): Promise<unknown>;
};

/** The operations on a kind of work and its records. */
export function recordsOf<R extends WorkRecord>(store: WorkStore<R>) {
  return {
    find: store.get,
    unfinished: store.unfinished,
    touch: ({ tenantId, _id }: WorkRecord) => store.touch(tenantId, _id),
    reject: ({ tenantId, _id }: WorkRecord) => store.remove(tenantId, _id),
  };
}

/** Maximum records of one kind that a sweep looks at. */
const SWEPT = 100;
/** Time without a change after which a record is swept, in ms. */
const SWEEP_AFTER_MS = 30_000;

/**
 * Submits the job of a record that was just inserted, or finds it, where another process has submitted it. When the job is not
 * accepted, the record is undone; while the store is unavailable nothing can be undone and the caller waits, so the sweep does it.
 * @throws AppError `unavailable`; the driver's error 11000 when the job is of another record.
 */
export async function submitWork(
  jobs: Pick<Jobs, "submit" | "find">,
  work: Pick<Work, "queue" | "idField" | "reject">,
  accepted: { record: WorkRecord; subject?: Record<string, string> } & Pick<
    Submission,
    "isInteractive" | "title" | "input" | "startedBy" | "keyId" | "steps" | "parentJobId" | "parentStep"
  >,
): Promise<JobRecord> {
  const { record, subject: more, ...about } = accepted;
  const { _id, tenantId, jobId } = record;
  const ids = { [work.idField]: _id };
  const subject = { ...ids, ...more };
  try {
    return await jobs.submit(work.queue, { tenantId, jobId, ids, subject, ...about });
  } catch (error) {
    const there = isDuplicateKey(error) ? await jobs.find(tenantId, jobId) : null;
    if (there?.payload[work.idField] === _id) return there;
    if (!isStoreUnavailable(error)) await work.reject(record, error);
    throw error;
  }
}

/** Cancels a job, and throws, as `jobs.cancel` does; the record of one that waited is closed at once. */
export async function cancelWork(
  jobs: Pick<Jobs, "cancel">,
  works: readonly Work[],
  { tenantId, jobId }: { tenantId: string; jobId: string },
): Promise<JobRecord> {
  const job = await jobs.cancel(tenantId, jobId);
  const work = workOf(works, job);
  if (!work || !isFinal(job.status)) return job;
  const record = await work.find(tenantId, String(job.payload[work.idField]));
  if (record?.jobId === jobId) await work.closeOrphan(record, job);
  return job;
}

/**
 * Repeats the work of a job that has failed or was cancelled.
 * @throws AppError `wrong_state` for another job, or work that cannot be repeated; `not_found` when its record is gone.
 */
export async function repeatWork(
  works: readonly Work[],
  { job, ...request }: RepeatRequest & { job: JobRecord },
): Promise<{ job: JobRecord }> {
  const work = workOf(works, job);
  const details = { status: job.status, kind: job.kind };
  if (job.status !== "failed" && job.status !== "cancelled")
    throw new AppError("wrong_state", "Only a job that has failed, or was cancelled, is repeated.", { details });
  if (!work?.repeat)
    throw new AppError("wrong_state", `A job of the kind ${job.kind} cannot be repeated.`, { details });
  const record = await work.find(job.tenantId, String(job.payload[work.idField]));
  if (!record) throw notFound("record of the job");
  return work.repeat(record, request);
}

/** Returns the result of a call about a job; null if the job is gone, or has just ended and so cannot be cancelled. */
export async function unlessOver<T>(call: Promise<T>): Promise<T | null> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof AppError && (error.code === "not_found" || error.code === "wrong_state")) return null;
    throw error;
  }
}

/** Ends records whose jobs ended without them; answers how many it looked at. Any number of processes may run it. */
export async function sweepWorks(
  jobs: Pick<Jobs, "find">,
  works: readonly Work[],
  olderThanMs: number = SWEEP_AFTER_MS,
): Promise<number> {
  const before = new Date(Date.now() - olderThanMs);
  let looked = 0;
  await sweepEach(works, async (work) => {
    await sweepEach(await work.unfinished({ before, limit: SWEPT }), async (record) => {
      const found = await jobs.find(record.tenantId, record.jobId);
      // A job that another process has submitted for a record of its own is not this one's.
      const job = found && isOfRecord(found, work, record) ? found : null;
      await (job && !isFinal(job.status) ? work.touch(record, job) : work.closeOrphan(record, job));
      looked += 1;
    });
  });
  return looked;
}

function isOfRecord({ payload }: JobRecord, { idField }: Work, { _id }: WorkRecord): boolean {
  return payload[idField] === undefined || payload[idField] === _id;
}

/** The kind of work that a job does; undefined for a job that no worker runs. */
export function workOf(
  works: readonly Work[],
  job: { queue: string; payload: Record<string, unknown> },
): Work | undefined {
  return works.find(({ queue, idField }) => queue.name === job.queue && job.payload[idField] !== undefined);
}
