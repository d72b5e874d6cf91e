import { settleApproval } from "../definitions/approvals.ts";
import { sumSpent } from "../definitions/runs.ts";
import { defined } from "../lib/defined.ts";
import type { WorkflowApproval } from "../store/approval-store.ts";
import type { WorkflowRunRecord } from "../store/workflow-run-store.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { toResult } from "./run-view.ts";
import { toDecisionOutput } from "./steps/human-approval.ts";
import { withdrawApprovals } from "./withdraw-approvals.ts";

/**
 * Applies a decision to its run: approved, the run resumes; otherwise it ends here, without a worker. Safe to repeat. A run
 * whose worker is about to release it is left to that worker, which reads the decision, and to the next sweep.
 */
export async function settleDecision(deps: WorkflowsDeps, approval: WorkflowApproval): Promise<void> {
  const { tenantId, runId, status, seenLease } = approval;
  const run = await deps.store.workflowRuns.get(tenantId, runId);
  await settleApproval(deps.store, approval, async () => {
    if (!run) return true;
    if (status !== "approved") return endRun(deps, run, approval);
    return run.end ? true : deps.waits.wake({ tenantId, jobId: run.jobId, ...defined({ seenLease }) });
  });
}

/** Lets an approval expire whose time is over, and its run with it. Null when it is decided by now. */
export async function expireApproval(
  deps: WorkflowsDeps,
  { tenantId, _id }: Pick<WorkflowApproval, "tenantId" | "_id">,
): Promise<void> {
  const expired = await deps.store.approvals.decide(tenantId, _id, { status: "expired" }, new Date());
  if (expired && expired.kind !== "agent") await settleDecision(deps, expired);
}

/** Whether the job of a run waits, or has a worker that may let it wait: the decision has to reach it then. */
async function mayWait({ jobs }: WorkflowsDeps, { tenantId, jobId }: WorkflowRunRecord): Promise<boolean> {
  const job = await jobs.find(tenantId, jobId);
  return job?.status === "awaiting" || job?.status === "running";
}

type Known = true | { lease: string | undefined };

/** Ends a run by a decision, and its job with it; not known yet while a worker has the job, so that it cannot be ended. */
async function endRun(deps: WorkflowsDeps, run: WorkflowRunRecord, approval: WorkflowApproval): Promise<Known> {
  const { workflowRuns } = deps.store;
  const { tenantId, runId, path, stepId, status, createdAt, decidedAt: finishedAt = new Date() } = approval;
  if (status !== "rejected" && status !== "expired") return true; // the run was cancelled
  if (!run.end) {
    const steps = await workflowRuns.steps(tenantId, runId);
    await workflowRuns.addStep({
      _id: `${runId}:${path}`,
      tenantId,
      runId,
      seq: (steps.at(-1)?.seq ?? -1) + 1,
      path,
      id: stepId,
      type: "human_approval",
      status: "completed",
      attempts: 1,
      startedAt: createdAt,
      finishedAt,
      output: JSON.stringify(toDecisionOutput(approval)),
    });
    const { costUsd } = sumSpent(steps.flatMap(({ spent }) => spent ?? []));
    await workflowRuns.finish(tenantId, runId, { status, costUsd, finishedAt });
  }
  const ended = await workflowRuns.get(tenantId, runId);
  if (ended?.end?.status !== status) return true; // it was ended otherwise, and its job with it
  await withdrawApprovals(deps, ended);
  if (!(await mayWait(deps, run))) return true;
  const isEnded = await deps.jobs.held.end(run.jobId, { result: toResult(ended, ended.end) });
  return isEnded || { lease: undefined };
}
