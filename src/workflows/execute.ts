import { Suspended } from "../jobs/reschedule.ts";
import type { WorkContext } from "../jobs/work.ts";
import { AppError, isCancel, notFound, Pause, toErrorView } from "../lib/errors.ts";
import { derivedId } from "../lib/ids.ts";
import { isStoreFailure } from "../store/store-errors.ts";
import type { WorkflowRunEnd, WorkflowRunRecord } from "../store/workflow-run-store.ts";
import type { Course, Walk } from "./course.ts";
import { toDefinition } from "./definitions.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { type Frame, openFrame, toRunTexts } from "./frame.ts";
import { makeTurn, RunEnds, StepFailed, TurnOver } from "./pauses.ts";
import { toResult } from "./run-view.ts";
import type { WorkflowResult } from "./schemas.ts";
import { toJsonValue } from "./scope-texts.ts";
import { countSteps, planSteps } from "./steps.ts";
import { walkSteps } from "./walk.ts";
import { withdrawApprovals } from "./withdraw-approvals.ts";

/**
 * How long a run keeps its worker before it lets others have a turn, in ms, with one step at work and with several; a step that
 * has begun is finished.
 */
const TURN_MS = 1_000;
const LONG_TURN_MS = 15_000;
/** Items of lists that may be under way at once in one run. */
const MAX_WIDTH = 50;

/** How a run ends. */
type Closing = Pick<WorkflowRunEnd, "status" | "error"> & { output?: string | undefined };

/**
 * Runs a run from its first step without a result, and records each result once, by the step's path: of two workers that
 * do the same step, one records it. So an interrupted run resumes after its last recorded step.
 * @throws Rescheduled, to be resumed later; Suspended by a decision, a child, a time or an event; AppError of a run that failed; the
 * signal's reason.
 */
export async function executeRun(deps: WorkflowsDeps, context: WorkContext): Promise<WorkflowResult> {
  const { tenantId, recordId: runId } = context;
  const { workflowRuns } = deps.store;
  const [run, results, open] = await Promise.all([
    workflowRuns.begin(tenantId, runId),
    workflowRuns.steps(tenantId, runId),
    workflowRuns.openSteps(tenantId, runId, [""]),
  ]);
  if (!run) {
    const ended = await workflowRuns.get(tenantId, runId);
    if (!ended?.end) throw notFound("run");
    return toResult(ended, ended.end); // an earlier worker ended it, and died before it could report that
  }
  // A worker that has lost the run may have noted after its decision that the run awaits it.
  const { awaiting } = run;
  if (awaiting && results.some(({ path }) => path === awaiting.path))
    await workflowRuns.goOn(tenantId, runId, awaiting.path);
  const texts = toRunTexts(run);
  const root = openFrame({ scope: "", from: "", to: "", texts, results, open });
  return toResult(run, await walkToEnd(deps, { run, texts, root }, context));
}

async function walkToEnd(
  deps: WorkflowsDeps,
  known: Pick<Walk, "run" | "texts" | "root">,
  context: WorkContext,
): Promise<WorkflowRunEnd> {
  const { run, root } = known;
  const { tenantId, _id: runId } = run;
  const finish = async ({ output, ...closing }: Closing) => {
    const end = { ...closing, ...(output === undefined ? {} : { output }), finishedAt: new Date() };
    if (await deps.store.workflowRuns.finish(tenantId, runId, end, await bytesOf(deps, run, root))) {
      if (run.definition.includes('"human_approval"')) await withdrawApprovals(deps, run);
      return end;
    }
    const other = await deps.store.workflowRuns.get(tenantId, runId); // a decision or a cancel came first
    return other?.end ?? end;
  };
  const on = openWalk(deps, known, context);
  try {
    return await finish(await walkAll(on));
  } catch (error) {
    if (error instanceof TurnOver) throw await pause(on);
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

/** Walks through all steps; how the run ends. @throws TurnOver; what `advance` throws. */
export async function walkAll(on: Walk): Promise<Closing> {
  const planned = planSteps(toDefinition(on.run).steps);
  const line = { previous: toJsonValue(undefined), last: undefined };
  const course: Course = {
    ...{ frame: on.root, line, signal: on.context.signal, deadlineAt: Number.POSITIVE_INFINITY },
    ...{ width: MAX_WIDTH, isNested: false },
  };
  try {
    await on.walkSteps(course, planned);
    return { status: "completed", output: course.line.last };
  } catch (error) {
    if (error instanceof RunEnds) return { status: error.status };
    if (error instanceof StepFailed) return { status: "failed", error: error.error };
    throw error;
  }
}

/** A run that this process is about to walk through. */
export function openWalk(
  deps: WorkflowsDeps,
  known: Pick<Walk, "run" | "texts" | "root" | "dry">,
  context: WorkContext,
): Walk {
  const allSteps = countSteps(planSteps(toDefinition(known.run).steps));
  const on: Walk = {
    ...known,
    ...{ deps, context, allSteps },
    turn: makeTurn({ shortMs: TURN_MS, longMs: LONG_TURN_MS, signal: context.signal }),
    progress: { stage: "steps", done: known.root.count(), total: allSteps },
    walkSteps: (course, list) => walkSteps(on, course, list),
  };
  return on;
}

/** What the job's work throws when none of its steps can go on now. */
async function pause({ deps, run, turn, context, progress }: Walk): Promise<Pause> {
  const { tenantId, _id: runId, jobId } = run;
  const paused = await turn.toPause(async (until) => {
    const waitId = derivedId("wait", { at: run.createdAt, from: `${runId}:${until.getTime()}` });
    await deps.waits.begin({ tenantId, jobId, waitId, until });
    return async () => (await deps.store.waits.get(tenantId, waitId))?.status !== "pending";
  });
  if (!(paused instanceof Suspended)) return paused;
  await context.progress(progress);
  await deps.store.workflowRuns.rest(tenantId, runId);
  return paused;
}

/** The bytes of a run's results. */
async function bytesOf({ store }: WorkflowsDeps, { tenantId, _id, definition }: WorkflowRunRecord, root: Frame) {
  const ofSteps = root.results().reduce((sum, { bytes = 0 }) => sum + bytes, 0);
  return definition.includes('"for_each"') ? ofSteps + (await store.workflowRuns.itemBytes(tenantId, _id)) : ofSteps;
}
