import { mayHaveEnded, openRunState, type Spent, sumSpent } from "../definitions/runs.ts";
import { defined, toView } from "../lib/defined.ts";
import { fromErrorView } from "../lib/errors.ts";
import type { JobRecord } from "../store/job-record.ts";
import type { JobState } from "../store/job-state.ts";
import type {
  Awaiting,
  WorkflowRunEnd,
  WorkflowRunRecord,
  WorkflowRunSummaryRecord,
} from "../store/workflow-run-store.ts";
import type { OpenStepRecord, StepChild, WorkflowStepRecord } from "../store/workflow-step-store.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { spentOfRun } from "./run-spent.ts";
import type { WorkflowResult, WorkflowRunSummary, WorkflowRunView } from "./schemas.ts";

/** The page on which people decide. */
const APPROVALS_PAGE = "/approvals";

/** A run as it is read back, with its steps and what its job reports. */
export async function readRun(
  { store, jobs }: Pick<WorkflowsDeps, "store" | "jobs">,
  run: WorkflowRunRecord,
  at = Date.now(),
): Promise<WorkflowRunView> {
  const { tenantId, _id, jobId } = run;
  const readSteps = () => store.workflowRuns.steps(tenantId, _id);
  const [job, steps, open] = await Promise.all([
    jobs.find(tenantId, jobId),
    readSteps(),
    store.workflowRuns.shownOpen(tenantId, _id),
  ]);
  const latest = mayHaveEnded(run, job) ? ((await store.workflowRuns.get(tenantId, _id)) ?? run) : run;
  const known = latest === run ? steps : await readSteps();
  const isCut = latest.end !== undefined && latest.end.status !== "completed";
  const hasItems = isCut && latest.definition.includes('"for_each"');
  const spent = hasItems ? await spentOfRun(store, run, { steps: known, hasItems }) : undefined;
  return toRunView(latest, { steps: known, open, job, at, spent });
}

type Read = { steps: readonly WorkflowStepRecord[]; open: readonly OpenStepRecord[]; job: JobState | undefined };

/** The view, with its steps in the order in which they ended; one that is under way or waits comes last. */
function toRunView(
  run: WorkflowRunRecord,
  { steps, open, job, at, spent }: Omit<Read, "job"> & { job: JobRecord | null; at: number; spent: Spent | undefined },
) {
  const error = run.end?.error ?? (run.end ? undefined : job?.error);
  const { tokens, costUsd } = spent ?? sumSpent(steps.flatMap((one) => one.spent ?? []));
  return {
    ...toRunSummary(run, job?.status, at),
    ...defined({
      retryOf: run.retryOf,
      input: parsed(run.input),
      output: parsed(run.end?.output),
      error,
      guard: job?.guard,
    }),
    steps: [...steps.map(toStepView), ...toOpenSteps(run, { steps, open, job: job?.status })],
    tokensUsed: tokens,
    costUsd,
  };
}

/** A run in a list, as it is at a time; `job` is the state of the job of one that is open. */
export function toRunSummary(
  run: WorkflowRunSummaryRecord,
  job: JobState | undefined,
  at = Date.now(),
): WorkflowRunSummary {
  const { _id: runId, workflowId, name: workflowName, version, jobId, createdAt, startedAt, end } = run;
  const { awaiting } = isWaiting(run, job) ? run : {};
  const { status = awaiting ? stateOfWait(awaiting, at) : stateOfOpen(job, startedAt), finishedAt } = end ?? {};
  const about = { runId, workflowId, workflowName, version, jobId, status };
  return toView({ ...about, awaiting: awaiting && toAwaitingView(awaiting), createdAt, startedAt, finishedAt });
}

function toAwaitingView({ approvalId, assigneeRole, expiresAt }: Awaiting) {
  return toView({ approvalId, assigneeRole, expiresAt, pageUrl: APPROVALS_PAGE });
}

const stateOfWait = (awaiting: Awaiting, at: number): WorkflowRunSummary["status"] =>
  isOverdue(awaiting, at) ? "expired" : "awaiting_approval";

/** A run that has begun is running while its job waits for its next turn. */
function stateOfOpen(job: JobState | undefined, startedAt: Date | undefined) {
  const state = openRunState(job);
  return state === "queued" && startedAt ? "running" : state;
}

/** Whether an open run awaits a decision now. After the decision its job is resumed first, so the job's state decides. */
function isWaiting<R extends WorkflowRunSummaryRecord>(
  run: R,
  job: JobState | undefined,
): run is R & { awaiting: Awaiting } {
  return run.end === undefined && run.awaiting !== undefined && job === "awaiting";
}

/** Whether the time for a decision is over. */
export const isOverdue = ({ expiresAt }: { expiresAt: Date }, at = Date.now()) => expiresAt.getTime() <= at;

type StepView = WorkflowRunView["steps"][number];
const typeOf = ({ type }: { type: string }) => type as StepView["type"]; // a definition's own, which was checked

const parsed = (json: string | undefined): unknown => (json === undefined ? undefined : JSON.parse(json));

function toStepView(step: WorkflowStepRecord): StepView {
  const { id, path, status, startedAt, finishedAt, attempts, output, error, spent, finishReason, items } = step;
  const about = { id, type: typeOf(step), path, status, startedAt, finishedAt, attempts, error, finishReason, items };
  const used = { tokensUsed: spent?.tokens, costUsd: spent?.costUsd };
  return toView({ ...about, output: parsed(output), ...used, child: step.child && toChildView(step.child) });
}

const toChildView = ({ ids, kind, jobId }: StepChild) => ({ ...ids, kind, jobId });

/** The steps that a run is at, or was at when it was cancelled: those that wait, or are to be attempted again. */
function toOpenSteps(run: WorkflowRunRecord, { steps, open, job }: Read): StepView[] {
  const { end, awaiting } = run;
  const asked = awaiting && {
    ...{ id: awaiting.stepId, type: "human_approval", path: awaiting.path, startedAt: awaiting.since, attempts: 1 },
    status: "awaiting_approval" as const,
  };
  const others = open.filter(({ path }) => path !== awaiting?.path).map(({ status, ...step }) => ({ ...step, status }));
  const known = [...others, ...(asked ? [asked] : [])].filter(({ path }) => !steps.some((one) => one.path === path));
  return known.flatMap((step): StepView[] => {
    const { id, path, startedAt, attempts } = step;
    const about = { id, type: typeOf(step), path, startedAt, attempts };
    const more = "scope" in step ? { items: step.items, child: step.child && toChildView(step.child) } : {};
    if (end?.status === "cancelled")
      return [toView({ ...about, ...more, status: end.status, finishedAt: end.finishedAt })];
    if (end || (step === asked && !isWaiting(run, job))) return [];
    const isForPerson = step.type === "human_approval" && step.status === "waiting";
    return [toView({ ...about, ...more, status: isForPerson ? "awaiting_approval" : step.status })];
  });
}

/** The result of a run that has ended. @throws AppError when it failed or was cancelled. */
export function toResult(run: WorkflowRunRecord, { status, output, error, costUsd }: WorkflowRunEnd): WorkflowResult {
  const { _id: runId, workflowId } = run;
  if (status === "failed" || status === "cancelled") throw fromErrorView(error, "The run failed.");
  return { runId, workflowId, status, ...defined({ output: parsed(output), costUsd }) };
}
