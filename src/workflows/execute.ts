import { AWAITING_APPROVAL } from "../jobs/job-outcome.ts";
import { Rescheduled, Suspended } from "../jobs/reschedule.ts";
import type { WorkContext } from "../jobs/work.ts";
import { defined } from "../lib/defined.ts";
import { AppError, type ErrorView, fromErrorView, isCancel, notFound, Pause, toErrorView } from "../lib/errors.ts";
import { jittered } from "../lib/jitter.ts";
import { inSpan } from "../observe/tracing.ts";
import { isStoreFailure, Overtaken } from "../store/store-errors.ts";
import type { WorkflowRunEnd, WorkflowRunRecord, WorkflowStepRecord } from "../store/workflow-run-store.ts";
import { toDefinition } from "./definitions.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { EvaluatorBusy } from "./evaluator.ts";
import type { WorkflowResult } from "./schemas.ts";
import { type ScopeTexts, type StepText, toJsonValue } from "./scope-texts.ts";
import type { StepResult } from "./steps/step.ts";
import { countSteps, kindOf, type PlannedStep, planSteps } from "./steps.ts";

/** How long a run keeps its worker before it lets others have a turn, in ms; a step that has begun is finished. */
const TURN_MS = 1_000;
/** Attempts of a step that names no number, the first one included. */
const DEFAULT_ATTEMPTS = 3;
const DEFAULT_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 600_000;

/** How a run ends. */
type Closing = Pick<WorkflowRunEnd, "status" | "error">;

type Walk = {
  deps: WorkflowsDeps;
  run: WorkflowRunRecord;
  context: WorkContext;
  progress: RunProgress;
  beganAt: number;
  knownSteps: number;
  allSteps: number;
};

/**
 * Runs a run from its first step without a result, and records each result once, by the step's path: of two workers that
 * do the same step, one records it. So an interrupted run resumes after its last recorded step.
 * @throws Rescheduled, to be resumed later; Suspended by a decision; AppError of a run that failed; the signal's reason.
 */
export async function executeRun(deps: WorkflowsDeps, context: WorkContext): Promise<WorkflowResult> {
  const { tenantId, recordId: runId } = context;
  const { workflowRuns } = deps.store;
  const [run, recorded] = await Promise.all([workflowRuns.begin(tenantId, runId), workflowRuns.steps(tenantId, runId)]);
  // A worker that has lost the run may have noted after its decision that the run awaits it.
  if (run?.awaiting && recorded.some(({ path }) => path === run.awaiting?.path))
    await workflowRuns.goOn(tenantId, runId);
  if (run) return toResult(run, await walkToEnd(deps, { run, progress: openProgress(run, recorded) }, context));
  const ended = await workflowRuns.get(tenantId, runId);
  if (!ended?.end) throw notFound("run");
  return toResult(ended, ended.end); // an earlier worker ended it, and died before it could report that
}

async function walkToEnd(
  deps: WorkflowsDeps,
  { run, progress }: Pick<Walk, "run" | "progress">,
  context: WorkContext,
): Promise<WorkflowRunEnd> {
  const { tenantId, _id: runId } = run;
  const finish = async (closing: Closing) => {
    const output = closing.status === "completed" ? progress.output() : undefined;
    const end = { ...closing, ...(output === undefined ? {} : { output }), finishedAt: new Date() };
    if (await deps.store.workflowRuns.finish(tenantId, runId, end, progress.bytes())) return end;
    const other = await deps.store.workflowRuns.get(tenantId, runId); // a decision or a cancel came first
    return other?.end ?? end;
  };
  try {
    const turn = { beganAt: performance.now(), knownSteps: progress.count() };
    const planned = planSteps(toDefinition(run).steps);
    const closing = await walk({ deps, run, context, progress, ...turn, allSteps: countSteps(planned) }, planned);
    return await finish(closing ?? { status: "completed" });
  } catch (error) {
    if (error instanceof Pause) throw error;
    const { signal, isLastAttempt } = context;
    if (isCancel(signal.aborted ? signal.reason : error)) {
      await finish({ status: "cancelled", error: toErrorView(new AppError("cancelled", "The run was cancelled.")) });
    } else if (!signal.aborted && isLastAttempt && !isStoreFailure(error)) {
      await context.confirm();
      await finish({ status: "failed", error: toErrorView(error) });
    }
    throw error;
  }
}

/** Walks through a list of steps; says how the run ends where a step ends it early. */
async function walk(on: Walk, list: readonly PlannedStep[]): Promise<Closing | undefined> {
  for (const planned of list) {
    const { status, error, output = "null" } = on.progress.resultOf(planned) ?? (await advance(on, planned));
    if (status === "failed") return { status, ...(error ? { error } : {}) };
    const { effect } = kindOf(planned.step);
    if (!effect) continue; // the outputs of other types may be long
    const { end, branch = "" } = effect(JSON.parse(output));
    const closing: Closing | undefined = end ? { status: end } : await walk(on, planned.branches[branch] ?? []);
    if (closing) return closing;
  }
  return undefined;
}

type StepOutcome = StepResult | (Pick<StepResult, "spent" | "finishReason"> & { error: ErrorView });

/** Does a step that has no result yet, and records it. */
async function advance(on: Walk, planned: PlannedStep): Promise<WorkflowStepRecord> {
  const { deps, run, context, progress, beganAt, knownSteps } = on;
  context.signal.throwIfAborted();
  if (progress.count() > knownSteps && performance.now() - beganAt > TURN_MS) throw new Rescheduled(0, "queued");
  const { path, id, step } = planned;
  const earlier = run.trying?.path === path ? run.trying : undefined;
  const startedAt = earlier?.startedAt ?? new Date();
  const attempts = (earlier?.attempts ?? 0) + 1;
  const attempt = { path, id, type: step.type, attempts, startedAt };
  let outcome: StepOutcome;
  try {
    const result = await runStep(on, planned);
    outcome = result.failure ? { ...result, error: toErrorView(result.failure) } : result;
  } catch (error) {
    if (isCancel(context.signal.reason)) await deps.store.workflowRuns.noteTry(run.tenantId, run._id, attempt);
    context.signal.throwIfAborted();
    if (error instanceof Suspended) {
      await context.step({ event: AWAITING_APPROVAL, id, path }, progressOf(on, AWAITING_APPROVAL));
      throw error;
    }
    if (error instanceof EvaluatorBusy) throw new Rescheduled(jittered(error.retryAfterMs ?? 0), "queued");
    if (isStoreFailure(error) || isCancel(error)) throw error;
    if (!(error instanceof AppError)) context.logger.error({ err: error, path }, "a step threw unexpectedly");
    await context.confirm();
    const afterMs = retryAfterMs(error, planned, attempts);
    if (afterMs !== undefined) {
      await deps.store.workflowRuns.noteTry(run.tenantId, run._id, attempt);
      throw new Rescheduled(afterMs, "queued");
    }
    outcome = { error: toErrorView(error) };
  }
  const record: WorkflowStepRecord = {
    ...attempt,
    _id: `${run._id}:${path}`,
    tenantId: run.tenantId,
    runId: run._id,
    seq: progress.count(),
    finishedAt: new Date(),
    ...("error" in outcome
      ? { status: "failed", error: { ...outcome.error, details: { ...Object(outcome.error.details), step: id, path } } }
      : {
          status: "completed",
          output: JSON.stringify(outcome.output ?? null),
          ...defined({ startedAt: outcome.startedAt }),
        }),
    ...defined({ spent: outcome.spent, finishReason: outcome.finishReason }),
  };
  const keep = () => deps.store.workflowRuns.addStep(record);
  // Steps that take no time would fill the store with one tenant's results. What a step did is recorded whether or not the
  // run's turn comes before it is stopped.
  const recording = context.share(async () => {
    const kept = await keep();
    const event = { event: "step", id, path, type: step.type };
    if (kept) await context.step({ ...event, status: kept.status }, progressOf(on, "steps", 1));
    return kept;
  });
  const kept = await recording.catch(async (error: unknown) => {
    if (context.signal.aborted) await keep();
    throw error;
  });
  if (!kept) throw new Overtaken("This run"); // the next turn reads what is recorded
  progress.add(kept);
  return kept;
}

/** How far a run is: the steps that have ended, of those that its definition has. */
function progressOf({ progress, allSteps }: Walk, stage: string, more = 0) {
  return { stage, done: progress.count() + more, total: allSteps };
}

function runStep({ deps, run, context, progress }: Walk, planned: PlannedStep): Promise<StepResult> {
  const { step, branches: _, ...place } = planned;
  const { tenantId, workflowId, version } = run;
  const { signal } = context;
  const kind = kindOf(step);
  const fill = () => {
    const asker = { tenantId, key: `${workflowId}:${version}:${place.path}`, signal };
    return deps.evaluator.fill(asker, { field: place.field, fields: kind.fields(step), scope: progress.scope() });
  };
  const attributes = { "switchyard.run.id": run._id, "switchyard.step.path": place.path };
  return inSpan({ name: `step ${step.type}`, kind: "INTERNAL", attributes }, () =>
    kind.run({ deps, run, step, place, fill, signal }),
  );
}

/**
 * The wait before the next attempt at a failed step, in ms: it doubles each time, and is what the other side asked for where
 * that is longer. Undefined when no attempt can help; an error of no kind of ours may be transient.
 */
function retryAfterMs(error: unknown, { step }: PlannedStep, attempts: number): number | undefined {
  const most = step.retry?.attempts ?? kindOf(step).attempts ?? DEFAULT_ATTEMPTS;
  const { retryable = true, retryAfterMs: askedMs = 0 } = error instanceof AppError ? error : {};
  if (!retryable || attempts >= most) return undefined;
  const backoffMs = Math.min((step.retry?.backoffMs ?? DEFAULT_BACKOFF_MS) * 2 ** (attempts - 1), MAX_BACKOFF_MS);
  return Math.max(jittered(backoffMs), Math.min(askedMs, MAX_BACKOFF_MS));
}

/** The result of a run that has ended. @throws AppError when it failed or was cancelled. */
export function toResult(run: WorkflowRunRecord, { status, output, error }: WorkflowRunEnd): WorkflowResult {
  const { _id: runId, workflowId } = run;
  if (status === "failed" || status === "cancelled") throw fromErrorView(error, "The run failed.");
  return { runId, workflowId, status, ...(output === undefined ? {} : { output: JSON.parse(output) }) };
}

type RunProgress = ReturnType<typeof openProgress>;

/** How far a run has come: the results that are recorded, and what expressions see of them. */
function openProgress(run: WorkflowRunRecord, recorded: readonly WorkflowStepRecord[]) {
  const { _id: runId, workflowId, version, createdAt, caller } = run;
  const about = { runId, workflowId, version, createdAt: createdAt.toISOString(), startedBy: caller.subject };
  const base = { input: toJsonValue(run.input), run: toJsonValue(JSON.stringify(about)) };
  const byPath = new Map<string, WorkflowStepRecord>();
  const outputs = new Map<string, StepText>();
  let bytes = 0;
  let previous = toJsonValue(undefined);
  let last: string | undefined;
  const add = (result: WorkflowStepRecord) => {
    byPath.set(result.path, result);
    bytes += result.bytes ?? 0;
    const output = toJsonValue(result.output);
    outputs.set(result.id, defined({ status: result.status, output, finishReason: result.finishReason }));
    if (kindOf(result).isSilent) return;
    previous = output;
    last = result.output;
  };
  for (const result of recorded) add(result);
  return {
    /** The recorded result of a step; undefined when it has none yet. */
    resultOf: ({ path }: PlannedStep) => byPath.get(path),
    /** Adds a result that was recorded just now. */
    add,
    /** Results so far. */
    count: () => byPath.size,
    /** The bytes of these in the store. */
    bytes: () => bytes,
    scope: (): ScopeTexts => ({ ...base, steps: outputs, previous }),
    /** The JSON output of the last step that has one to pass on; undefined before the first. */
    output: () => last,
  };
}
