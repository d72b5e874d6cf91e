import { DelayedError, type Job, UnrecoverableError } from "bullmq";
import { AppError, toErrorView } from "../src/errors.ts";
import { jittered } from "../src/jitter.ts";
import type { Lease } from "../src/jobs/claim.ts";
import type { PayloadOf, QueueDefinition } from "../src/jobs/define-queue.ts";
import type { JobRecord } from "../src/jobs/job-record.ts";
import { isFinal } from "../src/jobs/job-state.ts";
import { Postponed, Suspended } from "../src/jobs/postpone.ts";
import type { WorkContext } from "../src/jobs/work.ts";
import type { Logger } from "../src/logger.ts";
import type { Platform } from "../src/platform.ts";
import { isStoreUnavailable } from "../src/store/connect.ts";
import { holdLease, type RunningJobs } from "./hold-lease.ts";
import { traceJob } from "./trace-job.ts";
import { judge } from "./verdict.ts";

/** What a handler is given. */
export type JobContext<P> = Omit<WorkContext, "recordId"> & { payload: P; attempt: number };

/** Runs one try of a job; what it returns is the job's result. Safe to run twice. */
export type Handler<Q extends QueueDefinition> = (
  platform: Platform,
  context: JobContext<PayloadOf<Q>>,
) => Promise<unknown>;

/** A job that was lost with its worker so often is taken to be the cause of it, and given up. */
const MAX_LOST_TRIES = 10;
/** How long after its holder's lease a job is looked at again, in ms. */
const AFTER_LEASE_MS = 200;
/** How long after the store did not answer a job is looked at again, in ms; up to half of it less, at random. */
const STORE_AWAY_MS = 1_000;

export type ShellDeps = { platform: Platform; workerId: string; running: RunningJobs; leaseMs: number };

/** The BullMQ processor of a queue: payload, lease, progress and verdict live here, the work itself in the handler. */
export function makeProcessor<Q extends QueueDefinition>(deps: ShellDeps, queue: Q, handler: Handler<Q>) {
  const { claims } = deps.platform.jobs;
  const tryOnce = async (job: Job, token: string | undefined): Promise<unknown> => {
    const jobId = job.id ?? "";
    const claimed = await claims.claim(jobId, deps.workerId);
    if (!claimed) return yieldJob(deps, job, token);
    const { record, lease } = claimed;
    const parsed = queue.payload.safeParse(job.data);
    if (!parsed.success) {
      const path = parsed.error.issues[0]?.path.join(".") ?? "";
      const error = new AppError("invalid_request", "The job's payload is not valid.", { param: path });
      await claims.fail(lease, toErrorView(error));
      deps.platform.jobs.announcements.changed(jobId);
      throw new UnrecoverableError(`invalid payload at ${path || "its top"}`);
    }
    const payload = parsed.data as PayloadOf<Q>; // parsed by the queue's own schema
    return runTry(deps, {
      job,
      token,
      record,
      lease,
      queue,
      work: (context) => traceJob(record, () => handler(deps.platform, { ...context, payload })),
    });
  };
  return async (job: Job, token: string | undefined, _signal?: AbortSignal): Promise<unknown> => {
    try {
      return await tryOnce(job, token);
    } catch (error) {
      if (!isStoreUnavailable(error)) throw error;
      deps.platform.logger.warn({ err: error, jobId: job.id }, "the store is away; the job is looked at again");
      await job.moveToDelayed(Date.now() + jittered(STORE_AWAY_MS), token);
      throw new DelayedError();
    }
  };
}

type Try = {
  job: Job;
  token: string | undefined;
  record: JobRecord;
  lease: Lease;
  queue: QueueDefinition;
  work(context: Omit<JobContext<unknown>, "payload">): Promise<unknown>;
};

async function runTry(deps: ShellDeps, attempt: Try): Promise<unknown> {
  const { record, lease, queue } = attempt;
  const { claims, announcements } = deps.platform.jobs;
  const logger = deps.platform.logger.child({ jobId: record._id, tenantId: record.tenantId, queue: queue.name });
  if (record.attempts - record.failures > MAX_LOST_TRIES) {
    const error = new AppError("internal", "The job ended its worker again and again.");
    await claims.fail(lease, toErrorView(error));
    announcements.changed(record._id);
    throw new UnrecoverableError(error.message);
  }
  const held = holdLease(deps, { record, lease, timeoutMs: queue.timeoutMs });
  try {
    const result = await attempt.work({
      tenantId: record.tenantId,
      jobId: record._id,
      attempt: record.attempts,
      isLastAttempt: record.failures + 1 >= queue.attempts,
      signal: held.signal,
      logger,
      progress: held.progress,
      step: held.step,
    });
    const finished = await claims.complete(lease, result, held.lastProgress());
    if (finished) announcements.changed(record._id);
    else logger.warn("the job was taken by another worker; this result is dropped");
    return undefined; // the result is on the record; Redis keeps ids only
  } catch (error) {
    if (error instanceof Postponed && held.stopReason() === undefined) {
      const notBefore = new Date(Date.now() + error.afterMs);
      await claims.postpone(lease, notBefore);
      await attempt.job.moveToDelayed(notBefore.getTime(), attempt.token);
      throw new DelayedError();
    }
    if (error instanceof Suspended && held.stopReason() === undefined) return await suspend(deps, attempt, error);
    return await settleFailure(deps, attempt, { error, stopped: held.stopReason(), logger });
  } finally {
    held.release();
  }
}

/** Lets the job wait without a BullMQ job, unless what it waits for has come by now. */
async function suspend(deps: ShellDeps, { job, token, record, lease }: Try, { isOver }: Suspended): Promise<undefined> {
  const { claims, announcements } = deps.platform.jobs;
  const suspended = await claims.suspend(lease);
  announcements.changed(record._id);
  if (!suspended || !(await isOver()) || !(await claims.resume(record._id))) return undefined;
  await job.moveToDelayed(Date.now(), token);
  throw new DelayedError();
}

async function settleFailure(
  deps: ShellDeps,
  { job, token, record, lease, queue }: Try,
  {
    error,
    stopped,
    logger,
  }: { error: unknown; stopped: ReturnType<ReturnType<typeof holdLease>["stopReason"]>; logger: Logger },
): Promise<undefined> {
  const { claims, announcements } = deps.platform.jobs;
  const failures = record.failures + 1;
  const verdict = judge({
    error,
    stopped,
    failures,
    attempts: queue.attempts,
    backoffMs: queue.backoffMs,
    random: Math.random,
  });
  if (!(error instanceof AppError) && stopped === undefined) logger.error({ err: error }, "a job threw unexpectedly");
  switch (verdict.outcome) {
    case "drop":
      logger.warn("the job was taken by another worker");
      return undefined;
    case "cancel":
      await claims.cancelled(lease);
      announcements.changed(record._id);
      return undefined;
    case "release":
      await claims.release(lease);
      await job.moveToDelayed(Date.now(), token);
      throw new DelayedError();
    case "retry": {
      const notBefore = new Date(Date.now() + verdict.afterMs);
      logger.info(
        { err: { message: verdict.error.message }, afterMs: Math.round(verdict.afterMs) },
        "will be tried again",
      );
      await claims.retry(lease, notBefore, verdict.error);
      announcements.changed(record._id);
      await job.moveToDelayed(notBefore.getTime(), token);
      throw new DelayedError();
    }
    case "fail":
      logger.info({ code: verdict.error.code }, "failed");
      await claims.fail(lease, verdict.error);
      announcements.changed(record._id);
      throw new UnrecoverableError(verdict.error.message);
    default:
      return verdict satisfies never;
  }
}

/** A job that could not be claimed: ended (done), held by another (looked at after its lease), or not yet due. */
async function yieldJob(deps: ShellDeps, job: Job, token: string | undefined): Promise<undefined> {
  const record = job.id ? await deps.platform.store.jobs.findById(job.id) : null;
  if (!record || isFinal(record.status)) return undefined;
  const at = record.lease?.expiresAt ?? record.notBefore ?? new Date();
  await job.moveToDelayed(Math.max(at.getTime(), Date.now()) + AFTER_LEASE_MS, token);
  throw new DelayedError();
}
