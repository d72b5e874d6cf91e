import { sumSpent } from "../definitions/runs.ts";
import { Suspended } from "../jobs/reschedule.ts";
import type { WorkContext } from "../jobs/work.ts";
import { AppError, isCancel, notFound, Pause, toErrorView } from "../lib/errors.ts";
import { derivedId } from "../lib/ids.ts";
import { isStoreFailure } from "../store/store-errors.ts";
import type { WorkflowRunEnd } from "../store/workflow-run-store.ts";
import type { WorkflowStepRecord } from "../store/workflow-step-store.ts";
import { advance } from "./advance.ts";
import type { Course, Walk } from "./course.ts";
import { toDefinition } from "./definitions.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { openFrame, pathIn, toRunTexts } from "./frame.ts";
import { makeTurn, RunEnds, StepFailed, TurnOver } from "./pauses.ts";
import { spentOfRun } from "./run-spent.ts";
import { toResult } from "./run-view.ts";
import type { WorkflowResult } from "./schemas.ts";
import { toJsonValue } from "./scope-texts.ts";
import { countSteps, kindOf, type PlannedStep, planSteps } from "./steps.ts";
import { withdrawApprovals } from "./withdraw-approvals.ts";

/**
 * How long a run keeps its worker before it lets others have a turn, in ms, with one step at work and with several; a step that
 * has begun is finished.
 */
const turns = { shortMs: 1_000, longMs: 15_000 };
const endless = { shortMs: Number.POSITIVE_INFINITY, longMs: Number.POSITIVE_INFINITY };
/** What a definition, as it is stored, has if a run of it may have asked somebody. */
const APPROVAL = '"human_approval"';
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
    if (ended.definition.includes(APPROVAL)) await withdrawApprovals(deps, ended);
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
    const hasItems = run.definition.includes('"for_each"');
    const steps = [...root.results.values()];
    const { costUsd } =
      hasItems && closing.status !== "completed"
        ? await spentOfRun(deps.store, run, { steps, hasItems })
        : sumSpent(steps.flatMap(({ spent }) => spent ?? []));
    const end = { ...closing, ...(output === undefined ? {} : { output }), costUsd, finishedAt: new Date() };
    const ofItems = hasItems ? await deps.store.workflowRuns.itemBytes(tenantId, runId) : 0;
    if (await deps.store.workflowRuns.finish(tenantId, runId, end, root.bytes + ofItems)) {
      if (run.definition.includes(APPROVAL)) await withdrawApprovals(deps, run);
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
  const line = { previous: toJsonValue(undefined), last: undefined };
  const course: Course = {
    ...{ frame: on.root, line, signal: on.context.signal, deadlineAt: Number.POSITIVE_INFINITY },
    ...{ width: MAX_WIDTH, isNested: false },
  };
  try {
    await walkSteps(on, course, on.planned);
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
  const planned = planSteps(toDefinition(known.run).steps);
  const allSteps = countSteps(planned);
  return {
    ...{ ...known, deps, context, planned, allSteps, walkSteps },
    turn: makeTurn({ ...(known.dry ? endless : turns), signal: context.signal }),
    progress: { stage: "steps", done: known.root.results.size, total: allSteps },
  };
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

/** Walks through a list of steps, those that have a result included. @throws StepFailed; RunEnds; what `advance` throws. */
async function walkSteps(on: Walk, course: Course, list: readonly PlannedStep[]): Promise<void> {
  for (let at = 0; at < list.length; at += 1) {
    const planned = list[at];
    if (planned === undefined) return;
    const result = course.frame.results.get(pathIn(course.frame, planned)) ?? (await advance(on, course, planned));
    const target = result.status === "failed" ? jumpOf(planned, result) : undefined;
    if (target === undefined) await follow(on, course, planned, result);
    else at = list.findIndex(({ id }) => id === target) - 1;
  }
}

/** Where the run goes on after a step that failed; undefined: with the next one. @throws StepFailed when it does not. */
function jumpOf({ step }: PlannedStep, { error, output }: WorkflowStepRecord): string | undefined {
  const { onError } = step;
  if (typeof onError === "object" && "goto" in onError) return onError.goto;
  if (typeof onError === "object" && output !== undefined) return undefined;
  throw new StepFailed(error ?? { type: "server_error", code: "internal", message: "The step failed." });
}

/** Does what the result of a step means. */
async function follow(on: Walk, course: Course, planned: PlannedStep, result: WorkflowStepRecord): Promise<void> {
  const { output = "null", ends } = result;
  if (ends) throw new RunEnds(ends);
  const { effect, isSilent } = kindOf(planned.step);
  if (!isSilent) {
    course.line.previous = toJsonValue(output);
    course.line.last = output;
  }
  if (!effect) return; // the outputs of other types may be long
  const { end, branch = "" } = effect(JSON.parse(output));
  if (end) throw new RunEnds(end);
  await walkSteps(on, course, planned.branches[branch] ?? []);
}
