import { type Job as BullJob, DelayedError, UnrecoverableError } from "bullmq";
import { AppError, toErrorView } from "../src/errors.ts";
import { jittered } from "../src/jitter.ts";
import type { Lease } from "../src/jobs/claim.ts";
import type { QueueDefinition } from "../src/jobs/define-queue.ts";
import { Postponed, Suspended } from "../src/jobs/postpone.ts";
import { type WorkContext, workOf } from "../src/jobs/work.ts";
import type { Logger } from "../src/logger.ts";
import { isStoreUnavailable } from "../src/store/connect.ts";
import type { JobRecord } from "../src/store/job-record.ts";
import { isFinal } from "../src/store/job-state.ts";
import { holdLease, type ShellDeps } from "./hold-lease.ts";
import { poisonous } from "./run-alone.ts";
import { traceJob } from "./trace-job.ts";
import { judge } from "./verdict.ts";

/** What the shell needs of a BullMQ job. */
type Job = Pick<BullJob, "id" | "data"> & { moveToDelayed(at: number, token?: string): Promise<unknown> };

/** A job that was lost this many times with a worker that other jobs shared may be the cause: it gets a process for itself. */
const SUSPECT_AFTER_LOST = 2;
/** Below this number of losses it runs beside others when there is no such process: many suspects are mostly innocent. */
const CERTAIN_AFTER_LOST = 4;
/** A job that was lost this many times is taken to be the cause in any case, and given up. */
const MAX_LOST_TRIES = 10;
/** Processes that a worker starts at once for single jobs; further ones are looked at again later. */
const MAX_ALONE = 2;
/** How long after its holder's lease a job is looked at again, in ms. */
const AFTER_LEASE_MS = 200;
/** How long after the store did not answer a job is looked at again, in ms; up to half of it less, at random. */
const STORE_AWAY_MS = 1_000;

/** The BullMQ processor of a queue: payload, lease, progress and verdict live here; each job does the work that it names. */
export function makeProcessor(deps: ShellDeps, queue: QueueDefinition) {
  const { claims } = deps.platform.jobs;
  const tryOnce = async (job: Job, token: string | undefined): Promise<unknown> => {
    const jobId = job.id ?? "";
    const claimed = await claims.claim(jobId, deps.workerId);
    if (!claimed) return yieldJob(deps, job, token);
    const { record, lease } = claimed;
    deps.onClaimed?.();
    if (mustRunAlone(deps, record)) return runSuspect(deps, { job, token, lease, queue });
    const parsed = queue.payload.safeParse(job.data);
    if (!parsed.success) {
      const path = parsed.error.issues[0]?.path.join(".") ?? "";
      const error = new AppError("invalid_request", "The job's payload is not valid.", { param: path });
      await claims.fail(lease, toErrorView(error));
      deps.platform.jobs.announcements.changed(jobId);
      throw new UnrecoverableError(`invalid payload at ${path || "its top"}`);
    }
    const payload = parsed.data as Record<string, unknown>; // every payload is an object of ids
    const work = workOf(deps.works, { queue: queue.name, payload });
    if (!work) throw new TypeError(`No work has a job of the queue ${queue.name} with this payload.`);
    const recordId = String(payload[work.idField]);
    const run = (context: ShellContext) => traceJob(record, () => work.run({ ...context, recordId }));
    return runTry(deps, { job, token, record, lease, queue, run });
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

/** Attempts whose worker reported nothing of them since, as when it died. */
const lostTries = ({ attempts, failures, overtaken = 0 }: JobRecord) => attempts - 1 - failures - overtaken;

function mustRunAlone({ runAlone, alone }: ShellDeps, record: JobRecord): boolean {
  if (!runAlone || lostTries(record) < SUSPECT_AFTER_LOST) return false;
  return alone.size < MAX_ALONE || lostTries(record) >= CERTAIN_AFTER_LOST;
}

/** Runs a job that was lost several times in a process of its own; one that ends that process too is given up. */
async function runSuspect(
  deps: ShellDeps,
  { job, token, lease, queue }: Pick<Try, "job" | "token" | "lease" | "queue">,
): Promise<undefined> {
  const { claims, announcements } = deps.platform.jobs;
  const { jobId } = lease;
  await claims.release(lease); // the process claims it itself
  const lookAgainAt = async (at: number) => {
    await job.moveToDelayed(at, token);
    throw new DelayedError();
  };
  if (!deps.runAlone || deps.alone.size >= MAX_ALONE) return lookAgainAt(Date.now() + jittered(STORE_AWAY_MS));
  const stopping = new AbortController();
  deps.alone.add(jobId);
  deps.running.set(jobId, () => stopping.abort());
  try {
    const outcome = await deps.runAlone({ queue: queue.name, jobId }, stopping.signal);
    if (outcome.kind === "not-begun") return await lookAgainAt(Date.now() + jittered(STORE_AWAY_MS));
    if (outcome.kind === "ended")
      return outcome.delayUntil === undefined ? undefined : await lookAgainAt(outcome.delayUntil);
    const record = await deps.platform.store.jobs.findById(jobId);
    const error = poisonous();
    if (record?.lease) await claims.fail({ jobId, token: record.lease.token }, toErrorView(error));
    announcements.changed(jobId);
    throw new UnrecoverableError(error.message);
  } finally {
    deps.alone.delete(jobId);
    deps.running.delete(jobId);
  }
}

type ShellContext = Omit<WorkContext, "recordId">;
type Try = {
  job: Job;
  token: string | undefined;
  record: JobRecord;
  lease: Lease;
  queue: QueueDefinition;
  run(context: ShellContext): Promise<unknown>;
};

async function runTry(deps: ShellDeps, attempt: Try): Promise<unknown> {
  const { record, lease, queue } = attempt;
  const { claims, announcements } = deps.platform.jobs;
  const logger = deps.platform.logger.child({ jobId: record._id, tenantId: record.tenantId, queue: queue.name });
  if (lostTries(record) >= MAX_LOST_TRIES) {
    const error = new AppError("internal", "The job ended its worker again and again.");
    await claims.fail(lease, toErrorView(error));
    announcements.changed(record._id);
    throw new UnrecoverableError(error.message);
  }
  const held = holdLease(deps, { record, lease, timeoutMs: queue.timeoutMs });
  try {
    const result = await attempt.run({
      tenantId: record.tenantId,
      jobId: record._id,
      isLastAttempt: record.failures + 1 >= queue.attempts,
      signal: held.signal,
      logger,
      progress: held.progress,
      step: held.step,
    });
    const finished = await claims.complete(lease, result, held.lastProgress());
    if (finished) announcements.changed(record._id);
    else await drop(deps, { record, logger });
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

async function drop(deps: ShellDeps, { record, logger }: { record: JobRecord; logger: Logger }): Promise<undefined> {
  logger.warn("the job was taken by another worker; this attempt's outcome is dropped");
  await deps.platform.jobs.claims.overtaken(record._id);
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
      return drop(deps, { record, logger });
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
