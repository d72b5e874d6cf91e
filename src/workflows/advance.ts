import { makeUsageTracker, type Spent, type UsageTracker } from "../definitions/runs.ts";
import { AWAITING_APPROVAL } from "../jobs/job-outcome.ts";
import { Suspended } from "../jobs/reschedule.ts";
import { defined } from "../lib/defined.ts";
import { AppError, type ErrorView, isCancel, isOfPart, Pause, toErrorView } from "../lib/errors.ts";
import { jittered } from "../lib/jitter.ts";
import { inSpan } from "../observe/tracing.ts";
import { isStoreFailure, Overtaken } from "../store/store-errors.ts";
import type { WorkflowStepRecord } from "../store/workflow-step-store.ts";
import { startChild } from "./children.ts";
import type { Course, Walk } from "./course.ts";
import { type Attempt, noteOpen } from "./course.ts";
import { EvaluatorBusy } from "./evaluator.ts";
import { addResult, pathIn, toScope } from "./frame.ts";
import { makeNested } from "./nested.ts";
import { Later, makeDeadline, StepFailed, timedOut, Waiting } from "./pauses.ts";
import type { Nested, StartChild, StepResult, StepWork } from "./steps/step.ts";
import { kindOf, type PlannedStep } from "./steps.ts";

/** Attempts of a step that names no number, the first one included. */
const DEFAULT_ATTEMPTS = 3;
const DEFAULT_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 600_000;
/** How often in a row a step waits for a part of the platform that is away, and for how long at most: a quarter of an hour in all. */
const MAX_WAITS_FOR_PART = 20;
const MAX_WAIT_FOR_PART_MS = 60_000;

type StepOutcome = StepResult | (Omit<StepResult, "output"> & { output?: unknown; error: ErrorView });

/**
 * Does a step that has no result yet, and records it: of two workers that do the same step, one records it.
 * @throws TurnOver when it waits for something; the signal's reason; Overtaken; failures of the store.
 */
export async function advance(on: Walk, course: Course, planned: PlannedStep): Promise<WorkflowStepRecord> {
  for (;;) {
    course.signal.throwIfAborted();
    on.turn.check();
    const attempt = await beginAttempt(on, course, planned);
    try {
      return await record(on, course, { attempt, outcome: await attemptStep(on, course, attempt) });
    } catch (error) {
      if (!(error instanceof Suspended || error instanceof Later)) throw error;
      await noteWait(on, course, attempt, error);
      await on.turn.park(error, Math.min(attempt.deadlineAt, course.deadlineAt));
    }
  }
}

/** The next attempt at a step, or the one that waits. @throws as `advance`, while a wait before it is not over. */
async function beginAttempt(on: Walk, { frame, deadlineAt }: Course, planned: PlannedStep): Promise<Attempt> {
  const { step, id } = planned;
  const path = pathIn(frame, planned);
  const opened = frame.open.get(path);
  const startedAt = opened?.startedAt ?? new Date();
  const { timeoutMs = Number.POSITIVE_INFINITY } = kindOf(step).hasOwnTime ? {} : step;
  const attempts = opened === undefined ? 1 : opened.attempts + (opened.status === "retrying" ? 1 : 0);
  const attempt = {
    ...{ path, id, type: step.type, attempts, startedAt },
    planned,
    deadlineAt: +startedAt + timeoutMs,
  };
  const waitMs = opened?.retryAt ? opened.retryAt.getTime() - Date.now() : 0;
  if (waitMs > 0 && Date.now() < attempt.deadlineAt)
    await on.turn.park(new Later(waitMs), Math.min(attempt.deadlineAt, deadlineAt));
  if (!opened && attempt.deadlineAt < Number.POSITIVE_INFINITY)
    await noteOpen(on, frame, attempt, { status: "running" });
  return attempt;
}

/** Notes and tells that a step waits, when it begins to. */
async function noteWait(on: Walk, course: Course, attempt: Attempt, pause: Suspended | Later): Promise<void> {
  if (pause instanceof Later) return;
  const { frame, isNested } = course;
  const { path, id } = attempt;
  const isForPerson = !(pause instanceof Waiting);
  const isKnown = frame.open.get(path)?.status === "waiting";
  if (!isKnown && (!isForPerson || isNested)) await noteOpen(on, frame, attempt, { status: "waiting" });
  if (isForPerson) on.progress = { ...on.progress, stage: AWAITING_APPROVAL };
  if (frame !== on.root || (isKnown && !isForPerson)) return;
  const event = isForPerson ? AWAITING_APPROVAL : "waiting";
  await on.context.step({ event, id, path }, tell(on, event));
}

/** How far a run is: the steps that have ended, of those that its definition has. */
function tell(on: Walk, stage: string) {
  on.progress = { stage, done: on.root.results.size, total: on.allSteps };
  return on.progress;
}

/** One attempt; its result, or the error that is the step's. @throws as `advance`. */
async function attemptStep(on: Walk, course: Course, attempt: Attempt): Promise<StepOutcome> {
  const { context } = on;
  const deadline = Number.isFinite(attempt.deadlineAt) ? makeDeadline(course.signal, attempt.deadlineAt) : undefined;
  const { signal } = deadline ?? course;
  const used = makeUsageTracker(on.run);
  const earlier = course.frame.open.get(attempt.path)?.spent;
  if (earlier) used.add(earlier);
  try {
    signal.throwIfAborted();
    const result = await runStep(on, { ...course, signal }, { ...attempt, limit: used.limit });
    if (result.spent) used.add(result.spent);
    const counted = { ...result, ...spentBy(used) };
    if (!counted.failure) return counted;
    await retryIfWorth(on, course, attempt, { error: counted.failure, spent: counted.spent });
    return { ...counted, error: toErrorView(counted.failure) };
  } catch (error) {
    if (isCancel(context.signal.reason)) await noteOpen(on, course.frame, attempt, { status: "running" });
    course.signal.throwIfAborted();
    if (signal.aborted) return { error: toErrorView(timedOut()), ...spentBy(used) };
    if (error instanceof StepFailed) return { error: error.error }; // of a step within
    if (error instanceof Pause) throw error;
    if (error instanceof EvaluatorBusy) throw new Later(jittered(error.retryAfterMs ?? 0));
    if (isStoreFailure(error) || isCancel(error)) throw error;
    if (!(error instanceof AppError))
      context.logger.error({ err: error, path: attempt.path }, "a step threw unexpectedly");
    await context.confirm();
    if (error instanceof AppError && error.retryable) await waitForPart(on, course, attempt, error);
    await retryIfWorth(on, course, attempt, { error, ...spentBy(used) });
    return { error: toErrorView(error), ...spentBy(used) };
  } finally {
    deadline?.stop();
  }
}

/** What the attempts at a step have used; nothing where what counts are the steps within it. */
function spentBy({ spent }: UsageTracker): { spent?: Spent } {
  const sum = spent();
  return sum.tokens > 0 || sum.costUsd > 0 ? { spent: sum } : {};
}

function runStep(on: Walk, course: Course, attempt: Attempt & Pick<StepWork<unknown>, "limit">): Promise<StepResult> {
  const { deps, run, dry } = on;
  const { frame, line, signal } = course;
  const { path, planned, startedAt, attempts, limit } = attempt;
  const { step, field, id } = planned;
  const { tenantId, workflowId, version } = run;
  const kind = kindOf(step);
  const fill = () => {
    const asker = { tenantId, key: `${workflowId}:${version}:${planned.path}`, signal };
    return deps.evaluator.fill(asker, { field, fields: kind.fields(step), scope: toScope(frame, line.previous) });
  };
  let nested: Nested | undefined; // few steps hold others
  const work = {
    ...{ deps, run, step, fill, signal, startedAt, attempt: attempts, limit },
    place: { id, path, field },
    child: (start: StartChild) => startChild(on, course, attempt, start),
    get nested() {
      nested ??= makeNested(on, course, attempt);
      return nested;
    },
  };
  if (dry && kind.stub) return dry(work);
  const attributes = { "switchyard.run.id": run._id, "switchyard.step.path": path };
  return inSpan({ name: `step ${step.type}`, kind: "INTERNAL", attributes }, () => kind.run(work));
}

/**
 * @throws Later for the failure of a part of the platform, as of Redis when a job is to be submitted: it is none of the step's, so the
 * same attempt goes on, and finds what it has begun.
 */
async function waitForPart(on: Walk, { frame }: Course, attempt: Attempt, error: AppError): Promise<void> {
  if (!isOfPart(error) || on.dry) return;
  const waits = (frame.open.get(attempt.path)?.waitsForPart ?? 0) + 1;
  if (waits > MAX_WAITS_FOR_PART) return;
  const afterMs = jittered(Math.min(DEFAULT_BACKOFF_MS * 2 ** (waits - 1), MAX_WAIT_FOR_PART_MS));
  const retryAt = new Date(Date.now() + afterMs);
  await noteOpen(on, frame, attempt, { status: "running", waitsForPart: waits, retryAt });
  throw new Later(afterMs);
}

/**
 * @throws Later when another attempt at a failed step is worth it. The wait doubles each time, and is what the other side asked for
 * where that is longer. An error of no kind of ours may be transient.
 */
async function retryIfWorth(
  on: Walk,
  { frame }: Course,
  attempt: Attempt,
  { error, spent }: { error: unknown; spent?: Spent | undefined },
): Promise<void> {
  const { attempts, planned } = attempt;
  const { retry } = planned.step;
  const most = retry?.attempts ?? kindOf(planned.step).attempts ?? DEFAULT_ATTEMPTS;
  const { retryable = true, retryAfterMs: askedMs = 0 } = error instanceof AppError ? error : {};
  if (!retryable || attempts >= most) return;
  const backoffMs = Math.min((retry?.backoffMs ?? DEFAULT_BACKOFF_MS) * 2 ** (attempts - 1), MAX_BACKOFF_MS);
  const afterMs = Math.max(jittered(backoffMs), Math.min(askedMs, MAX_BACKOFF_MS));
  const { child: _ended, ...about } = frame.open.get(attempt.path) ?? {};
  const retryAt = new Date(Date.now() + afterMs);
  await noteOpen(on, frame, attempt, { ...about, status: "retrying", attempts, retryAt, ...defined({ spent }) });
  throw new Later(afterMs);
}

/** Records how a step has ended. @throws Overtaken when another worker has done so. */
async function record(
  on: Walk,
  { frame }: Course,
  { attempt, outcome }: { attempt: Attempt; outcome: StepOutcome },
): Promise<WorkflowStepRecord> {
  const { deps, context, root } = on;
  if ("error" in outcome && frame.open.size > 0) await cancelWithin(on, attempt);
  const result = toRecord(on, frame, attempt, outcome);
  const isRoot = frame === root;
  const keep = () =>
    isRoot
      ? deps.store.workflowRuns.addStep(result)
      : deps.store.workflowRuns.addItem({ ...result, scope: frame.scope });
  // Steps that take no time would fill the store with one tenant's results. What a step did is recorded whether or not the
  // run's turn comes before it is stopped.
  const recording = context.share(async () => {
    const kept = await keep();
    if (kept) addResult(frame, kept);
    const { id, path, type, status, child } = result;
    const started = child && { child: { ...child.ids, kind: child.kind, jobId: child.jobId } };
    if (kept && isRoot) await context.step({ event: "step", id, path, type, status, ...started }, tell(on, "steps"));
    return kept;
  });
  const kept = await recording.catch(async (error: unknown) => {
    if (context.signal.aborted) await keep();
    throw error;
  });
  if (!kept) throw new Overtaken("This run"); // the next turn reads what is recorded
  on.turn.did();
  return kept;
}

function toRecord({ run }: Walk, frame: Course["frame"], attempt: Attempt, outcome: StepOutcome): WorkflowStepRecord {
  const { path, id, type, attempts, startedAt, planned } = attempt;
  const { spent, finishReason, ends } = outcome;
  const { onError } = planned.step;
  const about = { _id: `${run._id}:${path}`, tenantId: run.tenantId, runId: run._id, path, id, type, attempts };
  const { child, items } = { ...frame.open.get(path), ...defined({ items: outcome.items }) };
  frame.seq += 1; // steps that run beside each other have places of their own
  const common = { ...about, startedAt, seq: frame.seq, finishedAt: new Date(), ...defined({ child, items }) };
  const used = defined({ spent, finishReason, ends });
  if (!("error" in outcome)) {
    const output = JSON.stringify(outcome.output ?? null);
    return { ...common, ...defined({ startedAt: outcome.startedAt }), status: "completed", output, ...used };
  }
  const instead =
    typeof onError === "object" && "default" in onError ? { output: JSON.stringify(onError.default ?? null) } : {};
  const details = { step: id, path, ...Object(outcome.error.details) };
  return { ...common, status: "failed", error: { ...outcome.error, details }, ...instead, ...used };
}

/** Cancels the jobs that a failed step, and those within it, wait for. */
async function cancelWithin({ deps, run }: Walk, { path }: Attempt): Promise<void> {
  const { tenantId, _id } = run;
  for (const jobId of await deps.store.workflowRuns.childrenWithin(tenantId, _id, path))
    await deps.cancelJob({ tenantId, jobId });
}
