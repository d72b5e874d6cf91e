import { mayHaveEnded, openRunState, sumSpent } from "../definitions/runs.ts";
import { defined, toView } from "../lib/defined.ts";
import type { JobRecord } from "../store/job-record.ts";
import type { JobState } from "../store/job-state.ts";
import type {
  Awaiting,
  WorkflowRunRecord,
  WorkflowRunSummaryRecord,
  WorkflowStepRecord,
} from "../store/workflow-run-store.ts";
import type { WorkflowsDeps } from "./deps.ts";
import type { WorkflowRunSummary, WorkflowRunView } from "./schemas.ts";

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
  const [job, steps] = await Promise.all([jobs.find(tenantId, jobId), readSteps()]);
  if (!mayHaveEnded(run, job)) return toRunView(run, { steps, job, at });
  const ended = (await store.workflowRuns.get(tenantId, _id)) ?? run;
  return toRunView(ended, { steps: await readSteps(), job, at });
}

/** The view, with its steps in the order in which they ended; one that is under way or waits comes last. */
function toRunView(
  run: WorkflowRunRecord,
  { steps, job, at }: { steps: readonly WorkflowStepRecord[]; job: JobRecord | null; at: number },
) {
  const error = run.end?.error ?? (run.end ? undefined : job?.error);
  const { tokens, costUsd } = sumSpent(steps.flatMap(({ spent }) => spent ?? []));
  return {
    ...toRunSummary(run, job?.status, at),
    ...defined({ input: parsed(run.input), output: parsed(run.end?.output), error }),
    steps: [...steps.map(toStepView), ...toOpenStep(run, steps, job)],
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
  const { id, path, status, startedAt, finishedAt, attempts, output, error, spent, finishReason } = step;
  const about = { id, type: typeOf(step), path, status, startedAt, finishedAt, attempts, error, finishReason };
  return toView({ ...about, output: parsed(output), tokensUsed: spent?.tokens, costUsd: spent?.costUsd });
}

/** The step that a run is at, or was at when it was cancelled: one that awaits a person, or its next attempt. */
function toOpenStep(run: WorkflowRunRecord, ended: readonly WorkflowStepRecord[], job: JobRecord | null): StepView[] {
  const { end, awaiting, trying } = run;
  const at = awaiting
    ? { id: awaiting.stepId, type: "human_approval", path: awaiting.path, startedAt: awaiting.since, attempts: 1 }
    : trying;
  if (!at || ended.some(({ path }) => path === at.path)) return [];
  const step = toView({ ...at, type: typeOf(at) });
  if (end?.status === "cancelled") return [toView({ ...step, status: end.status, finishedAt: end.finishedAt })];
  if (end) return [];
  if (!awaiting) return [{ ...step, status: "retrying" }];
  return isWaiting(run, job?.status) ? [{ ...step, status: "awaiting_approval" }] : [];
}
