import type { JobRecord } from "../jobs/job-record.ts";
import type { JobState } from "../jobs/job-state.ts";
import type { ApprovalRecord } from "../store/approval-store.ts";
import type {
  Awaiting,
  WorkflowRunRecord,
  WorkflowRunSummaryRecord,
  WorkflowStepRecord,
} from "../store/workflow-run-store.ts";
import type { ApprovalView, WorkflowRunSummary, WorkflowRunView } from "./schemas.ts";
import { openRunState } from "./states.ts";

/** A run as it is read back, with its steps in the order in which they ended; one that is under way or waits comes last. */
export function toRunView(
  run: WorkflowRunRecord,
  steps: readonly WorkflowStepRecord[],
  job: JobRecord | null,
): WorkflowRunView {
  const error = run.end?.error ?? (run.end ? undefined : job?.error);
  return {
    ...toRunSummary(run, job?.status),
    ...(run.input === undefined ? {} : { input: JSON.parse(run.input) }),
    ...(run.end?.output === undefined ? {} : { output: JSON.parse(run.end.output) }),
    ...(error === undefined ? {} : { error }),
    steps: [...steps.map(toStepView), ...toOpenStep(run, steps, job)],
    tokensUsed: steps.reduce((sum, { spent }) => sum + (spent?.tokens ?? 0), 0),
    costUsd: Number(steps.reduce((sum, { spent }) => sum + (spent?.costUsd ?? 0), 0).toFixed(9)),
  };
}

/** A run in a list; `job` is the state of the job of one that is open. */
export function toRunSummary(run: WorkflowRunSummaryRecord, job: JobState | undefined): WorkflowRunSummary {
  const { _id: runId, workflowId, name: workflowName, version, jobId, createdAt, startedAt, end } = run;
  const state = end?.status ?? openRunState(job, startedAt !== undefined);
  const waits = isWaiting(run, job);
  return {
    runId,
    workflowId,
    workflowName,
    version,
    jobId,
    status: waits ? "awaiting_approval" : state,
    ...(waits
      ? {
          awaiting: {
            approvalId: run.awaiting.approvalId,
            assigneeRole: run.awaiting.assigneeRole,
            expiresAt: run.awaiting.expiresAt.toISOString(),
          },
        }
      : {}),
    createdAt: createdAt.toISOString(),
    ...(startedAt === undefined ? {} : { startedAt: startedAt.toISOString() }),
    ...(end === undefined ? {} : { finishedAt: end.finishedAt.toISOString() }),
  };
}

/** Whether an open run waits for a decision now: once that is there, its job goes on, and is the first to know. */
function isWaiting<R extends WorkflowRunSummaryRecord>(
  run: R,
  job: JobState | undefined,
): run is R & { awaiting: Awaiting } {
  return run.end === undefined && run.awaiting !== undefined && job === "awaiting";
}

type StepView = WorkflowRunView["steps"][number];

function toStepView({
  id,
  type,
  path,
  status,
  startedAt,
  finishedAt,
  attempts,
  ...step
}: WorkflowStepRecord): StepView {
  const { output, error, spent } = step;
  return {
    id,
    type,
    path,
    status,
    startedAt: startedAt.toISOString(),
    finishedAt: finishedAt.toISOString(),
    attempts,
    ...(output === undefined ? {} : { output: JSON.parse(output) }),
    ...(error === undefined ? {} : { error }),
    ...(spent === undefined ? {} : { tokensUsed: spent.tokens, costUsd: spent.costUsd }),
  };
}

/** The step that an open run is at, where it says so: one that waits for a person, or for its next try. */
function toOpenStep(run: WorkflowRunRecord, ended: readonly WorkflowStepRecord[], job: JobRecord | null): StepView[] {
  if (run.end) return [];
  if (isWaiting(run, job?.status)) {
    const { stepId: id, path, since } = run.awaiting;
    const startedAt = since.toISOString();
    return [{ id, type: "human_approval", path, status: "awaiting_approval", startedAt, attempts: 1 }];
  }
  const { trying } = run;
  if (!trying || ended.some(({ path }) => path === trying.path)) return [];
  return [{ ...trying, status: "retrying", startedAt: trying.startedAt.toISOString() }];
}

export function toApprovalView(approval: ApprovalRecord): ApprovalView {
  const { _id: approvalId, workflowId, workflowName, runId, stepId, assigneeRole, message, status, comment } = approval;
  const { createdAt, expiresAt, decidedBy, decidedAt } = approval;
  return {
    approvalId,
    workflowId,
    workflowName,
    runId,
    stepId,
    assigneeRole,
    ...(message === undefined ? {} : { message }),
    status,
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
    ...(decidedBy === undefined ? {} : { decidedBy }),
    ...(decidedAt === undefined ? {} : { decidedAt: decidedAt.toISOString() }),
    ...(comment === undefined ? {} : { comment }),
  };
}
