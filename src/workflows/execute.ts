import { AppError, type ErrorView, notFound, toErrorView } from "../errors.ts";
import { jittered } from "../jitter.ts";
import { Postponed, Suspended } from "../jobs/postpone.ts";
import type { WorkContext } from "../jobs/work.ts";
import { isStoreUnavailable } from "../store/connect.ts";
import type { WorkflowRunEnd, WorkflowRunRecord, WorkflowStepRecord } from "../store/workflow-run-store.ts";
import { askApproval, toDecisionOutput } from "./ask-approval.ts";
import { type Course, openCourse } from "./course.ts";
import { toDefinition } from "./definitions.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { EvaluatorBusy } from "./evaluator.ts";
import { type PlannedStep, planSteps } from "./plan.ts";
import { runStep, type StepResult } from "./run-step.ts";
import type { WorkflowResult } from "./schemas.ts";
import type { RunState } from "./states.ts";
import { judgeStep } from "./step-retry.ts";

/** How long a run keeps its worker before it lets others have a turn, in ms; a step that has begun is finished. */
const TURN_MS = 1_000;

/** Leaves the walk: the run ends here. */
class RunEnded extends Error {
  override name = "RunEnded";
  readonly end: Pick<WorkflowRunEnd, "status" | "error">;

  constructor(end: Pick<WorkflowRunEnd, "status" | "error">) {
    super(`the run ends as ${end.status}`);
    this.end = end;
  }
}

type Walk = {
  deps: WorkflowsDeps;
  run: WorkflowRunRecord;
  context: WorkContext;
  course: Course;
  beganAt: number;
  knownSteps: number;
};

/**
 * Goes on with a run from its first step without a result, and records each result once, by the step's path: of two workers that
 * do the same step, one records it. So a run that was cut goes on after the last recorded step.
 * @throws Postponed, to be gone on with later; Suspended while a decision is awaited; AppError when the run failed; the signal's
 * reason.
 */
export async function executeRun(deps: WorkflowsDeps, context: WorkContext): Promise<WorkflowResult> {
  const { tenantId, recordId: runId } = context;
  const { workflowRuns } = deps.store;
  const run = await workflowRuns.begin(tenantId, runId);
  if (run) return toResult(run, await walkToEnd(deps, run, context));
  const ended = await workflowRuns.get(tenantId, runId);
  if (!ended?.end) throw notFound("run");
  return toResult(ended, ended.end); // it ended, and its worker died before it could tell
}

async function walkToEnd(deps: WorkflowsDeps, run: WorkflowRunRecord, context: WorkContext): Promise<WorkflowRunEnd> {
  const { tenantId, _id: runId } = run;
  const course = openCourse(run, await deps.store.workflowRuns.steps(tenantId, runId));
  const finish = async (closing: Pick<WorkflowRunEnd, "status" | "error">) => {
    const output = closing.status === "completed" ? course.output() : undefined;
    const end = { ...closing, ...(output === undefined ? {} : { output }), finishedAt: new Date() };
    if (await deps.store.workflowRuns.finish(tenantId, runId, end)) return end;
    const other = await deps.store.workflowRuns.get(tenantId, runId); // a decision or a cancel was before us
    return other?.end ?? end;
  };
  try {
    const turn = { beganAt: performance.now(), knownSteps: course.count() };
    await walk({ deps, run, context, course, ...turn }, planSteps(toDefinition(run).steps));
    return await finish({ status: "completed" });
  } catch (error) {
    if (error instanceof RunEnded) return finish(error.end);
    if (error instanceof Postponed || error instanceof Suspended) throw error;
    const { signal, isLastAttempt } = context;
    if (signal.aborted ? toErrorView(signal.reason).code === "cancelled" : isCancel(error)) {
      await finish({ status: "cancelled", error: toErrorView(new AppError("cancelled", "The run was cancelled.")) });
    } else if (!signal.aborted && isLastAttempt && !isStoreUnavailable(error)) {
      await finish({ status: "failed", error: toErrorView(error) });
    }
    throw error;
  }
}

const isCancel = (error: unknown) => error instanceof AppError && error.code === "cancelled";

async function walk(on: Walk, list: readonly PlannedStep[]): Promise<void> {
  for (const planned of list) {
    const result = on.course.resultOf(planned) ?? (await advance(on, planned));
    if (result.status === "failed") throw new RunEnded(toEnd(result.error));
    if (result.type !== "human_approval" && result.type !== "condition") continue; // the outputs of others may be long
    const { decision, branch } = Object(JSON.parse(result.output ?? "null")) as {
      decision?: RunState;
      branch?: string;
    };
    if (decision === "rejected" || decision === "expired") throw new RunEnded({ status: decision });
    if (result.type === "condition") await walk(on, branch === "then" ? planned.whenTrue : planned.whenFalse);
  }
}

const toEnd = (error: ErrorView | undefined) => ({ status: "failed" as const, ...(error ? { error } : {}) });

/** Does a step that has no result yet, and records it. */
async function advance(on: Walk, planned: PlannedStep): Promise<WorkflowStepRecord> {
  const { deps, run, context, course, beganAt, knownSteps } = on;
  context.signal.throwIfAborted();
  if (course.count() > knownSteps && performance.now() - beganAt > TURN_MS) throw new Postponed(0);
  const { path, id, step } = planned;
  const tried = run.trying?.path === path ? run.trying : undefined;
  const startedAt = tried?.startedAt ?? new Date();
  const attempts = (tried?.attempts ?? 0) + 1;
  const about = { path, id, type: step.type, attempts, startedAt };
  let outcome: StepResult | { error: ErrorView };
  try {
    outcome = await work(on, planned);
  } catch (error) {
    context.signal.throwIfAborted();
    if (error instanceof Suspended) {
      await context.step({ event: "awaiting_approval", id, path });
      throw error;
    }
    if (error instanceof EvaluatorBusy) throw new Postponed(jittered(error.retryAfterMs ?? 0, { random: Math.random }));
    if (isStoreUnavailable(error) || isCancel(error)) throw error;
    const verdict = judgeStep({ error, step, attempts, random: Math.random });
    if (!(error instanceof AppError)) context.logger.error({ err: error, path }, "a step threw unexpectedly");
    if ("afterMs" in verdict) {
      await deps.store.workflowRuns.noteTry(run.tenantId, run._id, about);
      throw new Postponed(verdict.afterMs);
    }
    outcome = verdict;
  }
  const record: WorkflowStepRecord = {
    ...about,
    _id: `${run._id}:${path}`,
    tenantId: run.tenantId,
    runId: run._id,
    seq: course.count(),
    finishedAt: new Date(),
    ...("error" in outcome
      ? { status: "failed", error: { ...outcome.error, details: { ...Object(outcome.error.details), step: id, path } } }
      : {
          status: "completed",
          output: JSON.stringify(outcome.output ?? null),
          ...(outcome.spent ? { spent: outcome.spent } : {}),
        }),
  };
  if (!(await deps.store.workflowRuns.addStep(record))) {
    throw new AppError("unavailable", "Another worker has this run.", { retryable: true });
  }
  course.add(record);
  await context.step({ event: "step", id, path, type: step.type, status: record.status });
  return record;
}

async function work({ deps, run, context, course }: Walk, planned: PlannedStep): Promise<StepResult> {
  const { step } = planned;
  const scope = course.scope();
  if (step.type !== "human_approval") return runStep({ deps, run, step, planned, scope, context });
  return { output: toDecisionOutput(await askApproval({ deps, run, step, planned, scope, context })) };
}

/** The result of a run that has ended. @throws AppError when it failed or was cancelled. */
export function toResult(run: WorkflowRunRecord, { status, output, error }: WorkflowRunEnd): WorkflowResult {
  const { _id: runId, workflowId } = run;
  if (status === "failed" || status === "cancelled") {
    const { code = "internal", message = "The run failed.", param, details } = error ?? {};
    throw new AppError(code, message, { details, ...(param === undefined ? {} : { param }) });
  }
  return { runId, workflowId, status, ...(output === undefined ? {} : { output: JSON.parse(output) }) };
}
