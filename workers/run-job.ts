import { type Job as BullJob, DelayedError, UnrecoverableError } from "bullmq";
import type { GuardCount } from "../src/guards/rules.ts";
import type { Lease } from "../src/jobs/claim.ts";
import type { QueueDefinition } from "../src/jobs/queues.ts";
import { Rescheduled, Suspended } from "../src/jobs/reschedule.ts";
import { type WorkContext, workOf } from "../src/jobs/work.ts";
import { AppError, type ErrorView, toErrorView } from "../src/lib/errors.ts";
import { jittered } from "../src/lib/jitter.ts";
import { inCall } from "../src/net/call-scope.ts";
import type { Logger } from "../src/observe/logger.ts";
import { inSpan } from "../src/observe/tracing.ts";
import type { JobRecord } from "../src/store/job-record.ts";
import { isFinal } from "../src/store/job-state.ts";
import { isStoreFailure } from "../src/store/store-errors.ts";
import { holdLease, lostAttempts, type ShellDeps } from "./hold-lease.ts";
import type { RunAlone } from "./run-alone.ts";
import { judge, STORE_RETRY_MS, type StopReason } from "./verdict.ts";

/** What the shell needs of a BullMQ job. */
type Job = Pick<BullJob, "id" | "data"> & { moveToDelayed(at: number, token?: string): Promise<unknown> };

/** A job that was lost this many times with a worker that other jobs shared may be the cause: it gets a process for itself. */
const SUSPECT_AFTER_LOST = 2;
/** Below this number of losses it runs beside others when there is no such process: many suspects are mostly innocent. */
const CERTAIN_AFTER_LOST = 4;
/** A job that was lost this many times is taken to be the cause in any case, and given up. */
const MAX_LOST_ATTEMPTS = 10;
/** Processes that a worker starts at once for single jobs; further ones are looked at again later. */
const MAX_ALONE = 2;
/** How long after its holder's lease a job is looked at again, in ms. */
const AFTER_LEASE_MS = 200;

/** The BullMQ processor of a queue: payload, lease, progress and verdict live here; each job does the work that it names. */
export function makeProcessor(deps: ShellDeps, queue: QueueDefinition) {
  return async (job: Job, token: string | undefined, _signal?: AbortSignal): Promise<unknown> => {
    const lookAgainAt = async (at: number): Promise<never> => {
      await job.moveToDelayed(at, token);
      throw new DelayedError();
    };
    const { tenantId } = job.data as { tenantId?: string }; // an invalid payload is reported below
    const leave = await deps.pace.enterJob(tenantId ?? "", queue.name, deps.closing.signal).catch(() => undefined);
    if (!leave) return lookAgainAt(Date.now()); // another process begins it
    try {
      return await processJob(deps, { queue, job, lookAgainAt });
    } catch (error) {
      if (!isStoreFailure(error)) throw error;
      deps.platform.logger.warn(
        { err: error, jobId: job.id },
        "the job's writes were not taken; it is looked at again",
      );
      return await lookAgainAt(Date.now() + jittered(STORE_RETRY_MS));
    } finally {
      leave();
    }
  };
}

/** A job that this worker holds. `lookAgainAt` leaves it to BullMQ until then, in ms since 1970. */
type Attempt = {
  queue: QueueDefinition;
  record: JobRecord;
  lease: Lease;
  lookAgainAt(at: number): Promise<never>;
};

async function processJob(
  deps: ShellDeps,
  { queue, job, lookAgainAt }: Pick<Attempt, "queue" | "lookAgainAt"> & { job: Job },
): Promise<unknown> {
  const jobId = job.id ?? "";
  const claimed = await deps.platform.jobs.claims.claim(jobId, deps.workerId);
  if (!claimed) return yieldJob(deps, jobId, lookAgainAt);
  const { record, lease } = claimed;
  const attempt = { queue, record, lease, lookAgainAt };
  deps.onClaimed?.();
  if (deps.runAlone && isSuspect(deps, record)) return runSuspect(deps, attempt, deps.runAlone);
  const parsed = queue.payload.safeParse(job.data);
  if (!parsed.success) {
    const path = String(parsed.error.issues[0]?.path[0] ?? ""); // a payload is flat
    const error = new AppError("invalid_request", "The job's payload is not valid.", { param: path });
    return fail(deps, lease, toErrorView(error), `invalid payload at ${path || "its top"}`);
  }
  const payload = parsed.data as Record<string, unknown>; // every payload is an object of ids
  const work = workOf(deps.works, { queue: queue.name, payload });
  if (!work) throw new TypeError(`No work has a job of the queue ${queue.name} with this payload.`);
  const recordId = String(payload[work.idField]);
  return runAttempt(deps, attempt, (context) =>
    inItsCall(deps, record, lease, () => work.run({ ...context, recordId })),
  );
}

/**
 * Runs one try of a job as a part of the trace and of the call that submitted it. Where that is, stands on the record and not
 * in BullMQ's job, so that a job which Redis had lost is still found in its request's trace.
 */
function inItsCall<T>(
  { platform }: ShellDeps,
  record: JobRecord,
  { found }: Lease,
  work: () => Promise<T>,
): Promise<T> {
  const span = {
    name: `${record.queue} process`,
    kind: "CONSUMER",
    parent: { traceparent: record.trace },
    attributes: {
      "messaging.system": "bullmq",
      "messaging.operation.type": "process",
      "messaging.destination.name": record.queue,
      "messaging.message.id": record._id,
      "switchyard.tenant_id": record.tenantId,
      "switchyard.attempt": record.attempts,
    },
  } as const;
  const { tenantId, keyId, requestId, depth = 0, nesting = 0 } = record;
  const onRefused = (counts: readonly GuardCount[]) => platform.guards.tellRefused({ tenantId, keyId }, counts);
  return inCall({ requestId, depth, nesting: nesting + 1, onRefused, ...(found && { found }) }, () =>
    inSpan(span, work),
  );
}

/** Fails the job, on its record and in BullMQ, where operators read the reason. */
async function fail(deps: ShellDeps, lease: Lease, error: ErrorView, reason = error.message): Promise<never> {
  await deps.platform.jobs.claims.fail(lease, error);
  throw new UnrecoverableError(reason);
}

/** Whether a job is to have a process for itself. */
function isSuspect({ alone }: ShellDeps, record: JobRecord): boolean {
  return lostAttempts(record) >= (alone.size < MAX_ALONE ? SUSPECT_AFTER_LOST : CERTAIN_AFTER_LOST);
}

/** Runs a job that was lost several times in a process of its own; one that ends that process too is given up. */
async function runSuspect(
  deps: ShellDeps,
  { queue, lease, lookAgainAt }: Attempt,
  runAlone: RunAlone,
): Promise<undefined> {
  const { jobId } = lease;
  await deps.platform.jobs.claims.release(lease); // the process claims it itself
  if (deps.alone.size >= MAX_ALONE) return lookAgainAt(Date.now() + jittered(STORE_RETRY_MS));
  const stopping = new AbortController();
  deps.alone.add(jobId);
  deps.running.set(jobId, () => stopping.abort());
  try {
    const outcome = await runAlone({ queue: queue.name, jobId, timeoutMs: queue.timeoutMs }, stopping.signal);
    if (outcome.kind === "not-begun") return await lookAgainAt(Date.now() + jittered(STORE_RETRY_MS));
    if (outcome.kind === "ended")
      return outcome.delayUntil === undefined ? undefined : await lookAgainAt(outcome.delayUntil);
    const record = await deps.platform.store.jobs.findById(jobId);
    const text = "The job ended every worker process that ran it, at last one that it had for itself.";
    const token = record?.lease?.token ?? lease.token; // without a lease the job has ended, and nothing changes
    return await fail(deps, { jobId, token }, toErrorView(new AppError("internal", text)));
  } finally {
    deps.alone.delete(jobId);
    deps.running.delete(jobId);
  }
}

async function runAttempt(
  deps: ShellDeps,
  attempt: Attempt,
  run: (context: Omit<WorkContext, "recordId">) => Promise<unknown>,
): Promise<undefined> {
  const { record, lease, queue } = attempt;
  const { _id: jobId, tenantId } = record;
  const logger = deps.platform.logger.child({ jobId, tenantId, queue: queue.name });
  if (lostAttempts(record) >= MAX_LOST_ATTEMPTS) {
    const error = new AppError("internal", "The job ended its worker again and again.");
    return fail(deps, lease, toErrorView(error));
  }
  const held = holdLease(deps, { record, lease, timeoutMs: queue.timeoutMs });
  const { signal, progress, confirm, step } = held;
  try {
    deps.pace.begins(tenantId);
    const share = <T>(part: () => Promise<T>) => deps.pace.share(tenantId, signal, part);
    const inner: WorkContext["inner"] = async ({ depth, signal: until }, innerRun) => {
      const leave = await deps.pace.enterInner({ tenantId, jobId, depth }, until);
      return innerRun().finally(leave);
    };
    const isLastAttempt = record.failures + 1 >= queue.attempts;
    const result = await run({ tenantId, jobId, isLastAttempt, signal, logger, progress, confirm, step, share, inner });
    const finished = await deps.platform.jobs.claims.complete(lease, result, held.lastProgress());
    if (!finished) await drop(deps, { record, logger });
    return undefined; // the result is on the record; Redis keeps ids only
  } catch (error) {
    return await settle(deps, attempt, { error, stopped: held.stopReason(), logger });
  } finally {
    held.release();
  }
}

async function drop(deps: ShellDeps, { record, logger }: { record: JobRecord; logger: Logger }): Promise<undefined> {
  logger.warn("the job was taken by another worker; this attempt's outcome is dropped");
  await deps.platform.jobs.claims.overtaken(record);
}

/** Gives the job back, or ends it, after its work has thrown. */
async function settle(
  deps: ShellDeps,
  { record, lease, queue: { attempts, backoffMs }, lookAgainAt }: Attempt,
  { error, stopped, logger }: { error: unknown; stopped: StopReason | undefined; logger: Logger },
): Promise<undefined> {
  const { claims } = deps.platform.jobs;
  if (error instanceof Rescheduled && stopped === undefined) {
    const notBefore = new Date(Date.now() + error.afterMs);
    if (!(await claims.reschedule(lease, notBefore, error.state))) return drop(deps, { record, logger });
    return lookAgainAt(notBefore.getTime());
  }
  if (error instanceof Suspended && stopped === undefined) {
    // It waits without a BullMQ job, unless what it waits for has come by now, or its cancellation.
    const suspended = await claims.suspend(lease);
    if (!suspended) return drop(deps, { record, logger });
    if (!(suspended.cancelRequestedAt || (await error.isOver()))) return undefined;
    return (await claims.resume(lease.jobId)) ? lookAgainAt(Date.now()) : undefined;
  }
  if (!(error instanceof AppError || isStoreFailure(error)) && stopped === undefined)
    logger.error({ err: error }, "a job threw unexpectedly");
  const failures = record.failures + 1;
  const verdict = judge({ error, stopped, failures, attempts, backoffMs, random: Math.random });
  switch (verdict.outcome) {
    case "drop":
      return drop(deps, { record, logger });
    case "cancel":
      await claims.cancelled(lease);
      return undefined;
    case "release":
      if (stopped === undefined)
        logger.warn({ err: error }, "the job's writes were not taken; it is tried again later");
      if (!(await claims.release(lease))) return drop(deps, { record, logger });
      return lookAgainAt(Date.now() + verdict.afterMs);
    case "retry": {
      const notBefore = new Date(Date.now() + verdict.afterMs);
      const { message } = verdict.error;
      logger.info({ err: { message }, afterMs: Math.round(verdict.afterMs) }, "will be tried again");
      if (!(await claims.retry(lease, notBefore, verdict.error))) return drop(deps, { record, logger });
      return lookAgainAt(notBefore.getTime());
    }
    case "fail":
      logger.info({ code: verdict.error.code }, "failed");
      return fail(deps, lease, verdict.error);
    default:
      return verdict satisfies never;
  }
}

/** A job that could not be claimed: ended (done), held by another (looked at after its lease), or not yet due. */
async function yieldJob(deps: ShellDeps, jobId: string, lookAgainAt: Attempt["lookAgainAt"]): Promise<undefined> {
  const record = await deps.platform.store.jobs.findById(jobId);
  if (!record || isFinal(record.status)) return undefined;
  const at = record.lease?.expiresAt ?? record.notBefore ?? new Date();
  return lookAgainAt(Math.max(at.getTime(), Date.now()) + AFTER_LEASE_MS);
}
