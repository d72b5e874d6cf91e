import { AppError, notFound } from "../errors.ts";
import { isFinal } from "../jobs/job-state.ts";
import type { ApprovalRecord, Decision } from "../store/approval-store.ts";
import { mapPage, type Page, type PageQuery } from "../store/page.ts";
import { type Caller, hasRole } from "../tenancy/roles.ts";
import { toDecisionOutput } from "./ask-approval.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { toResult } from "./execute.ts";
import { readRun } from "./read-run.ts";
import { toApprovalView } from "./run-view.ts";
import type { ApprovalDetail, ApprovalView, DecisionInput, DecisionResult } from "./schemas.ts";
import type { ApprovalState } from "./states.ts";

/** Approvals that one sweep looks at together, of each kind, and how often: many may run out at the same time. */
const SWEPT = 100;
const MAX_ROUNDS = 20;
/** After this time a run that was not told of its decision is told again, in ms. */
const TELL_AGAIN_AFTER_MS = 5_000;

export type ApprovalQuery = PageQuery & { status: ApprovalState };

export type Approvals = {
  /** Approvals in one state, the newest first. */
  approvals(tenantId: string, query: ApprovalQuery): Promise<Page<ApprovalView>>;
  /** @throws AppError `not_found`. */
  approval(caller: Caller, approvalId: string): Promise<ApprovalDetail>;
  /** @throws AppError `not_found`, `insufficient_role`; `wrong_state` when it was decided, or its time is over. */
  decide(caller: Caller, approvalId: string, body: DecisionInput): Promise<DecisionResult>;
};

/** Decisions of people. The approval's own state decides, by one compare-and-set; what happens to the run follows it. */
export function makeApprovals(deps: WorkflowsDeps): Approvals & { sweepApprovals(): Promise<void> } {
  const { approvals, workflowRuns } = deps.store;
  const find = async (tenantId: string, approvalId: string) => {
    const approval = await approvals.get(tenantId, approvalId);
    if (!approval) throw notFound("approval");
    return approval;
  };
  const runOf = async ({ tenantId, runId }: ApprovalRecord) => {
    const run = await workflowRuns.get(tenantId, runId);
    if (!run) throw notFound("run");
    return readRun(deps, run);
  };
  return {
    approvals: async (tenantId, query) => mapPage(await approvals.list(tenantId, query), toApprovalView),
    async approval(caller, approvalId) {
      const approval = await find(caller.tenantId, approvalId);
      const mayDecide = approval.status === "pending" && hasRole(caller.role, approval.assigneeRole);
      return { ...toApprovalView(approval), run: await runOf(approval), mayDecide };
    },
    async decide(caller, approvalId, { decision, comment }) {
      const { assigneeRole } = await find(caller.tenantId, approvalId);
      if (!hasRole(caller.role, assigneeRole)) {
        throw new AppError("insufficient_role", `This decision is for the role ${assigneeRole}.`);
      }
      const by = { decidedBy: caller.subject, ...(comment === undefined ? {} : { comment: comment.toWellFormed() }) };
      const decided = await approvals.decide(caller.tenantId, approvalId, { status: decision, ...by }, new Date());
      if (!decided) throw toRefusal(await find(caller.tenantId, approvalId));
      await settle(deps, decided);
      return { ...toApprovalView(decided), runStatus: (await runOf(decided)).status };
    },
    async sweepApprovals() {
      const now = new Date();
      for (let round = 0; round < MAX_ROUNDS; round += 1) {
        const overdue = await approvals.overdue(now, SWEPT);
        for (const { tenantId, _id } of overdue) {
          const expired = await approvals.decide(tenantId, _id, { status: "expired" }, now);
          if (expired) await settle(deps, expired);
        }
        if (overdue.length < SWEPT) break;
      }
      const before = new Date(now.getTime() - TELL_AGAIN_AFTER_MS);
      for (const approval of await approvals.unsettled(before, SWEPT)) await settle(deps, approval);
    },
  };
}

/** Why a decision comes too late, with the first one. */
function toRefusal(approval: ApprovalRecord): AppError {
  const isOver = approval.status === "pending"; // its time, and the sweep has not been here yet
  const message = isOver ? "The time to decide is over." : `It is ${approval.status} already.`;
  return new AppError("wrong_state", message, { details: toApprovalView(approval) });
}

/** Ends the approval of a run that was cancelled. */
export async function withdraw(deps: WorkflowsDeps, tenantId: string, approvalId: string): Promise<void> {
  const decision: Decision = { status: "cancelled" };
  const { approvals } = deps.store;
  if (await approvals.decide(tenantId, approvalId, decision, new Date())) await approvals.settle(tenantId, approvalId);
}

/**
 * Tells a run of its decision: approved, it goes on; else it ends here and now, without a worker. Safe to do again. A run whose
 * worker is just about to let go of it is left to that worker, which looks at the decision, and to the next sweep.
 */
async function settle(deps: WorkflowsDeps, approval: ApprovalRecord): Promise<void> {
  const { approvals, workflowRuns } = deps.store;
  const { tenantId, _id, runId, path } = approval;
  const run = await workflowRuns.get(tenantId, runId);
  if (run && !run.end && approval.status === "approved" && !(await deps.jobs.resume(run.jobId))) {
    const [job, steps] = await Promise.all([deps.jobs.find(tenantId, run.jobId), workflowRuns.steps(tenantId, runId)]);
    const isTold = !job || isFinal(job.status) || job.status === "queued" || steps.some((step) => step.path === path);
    if (!isTold) return;
  }
  if (run && approval.status !== "approved" && !(await endRun(deps, approval))) return;
  await approvals.settle(tenantId, _id);
}

/** Ends a run by a decision, and its job with it; false when a worker has the job, so that it cannot be ended yet. */
async function endRun(deps: WorkflowsDeps, approval: ApprovalRecord): Promise<boolean> {
  const { workflowRuns } = deps.store;
  const { tenantId, runId, path, stepId, status, createdAt } = approval;
  const finishedAt = approval.decidedAt ?? new Date();
  const earlier = await workflowRuns.steps(tenantId, runId);
  if (!earlier.some((step) => step.path === path)) {
    await workflowRuns.addStep({
      _id: `${runId}:${path}`,
      tenantId,
      runId,
      seq: earlier.length,
      path,
      id: stepId,
      type: "human_approval",
      status: "completed",
      attempts: 1,
      startedAt: createdAt,
      finishedAt,
      output: JSON.stringify(toDecisionOutput(approval)),
    });
  }
  if (status === "rejected" || status === "expired") {
    await workflowRuns.finish(tenantId, runId, { status, finishedAt });
  }
  const run = await workflowRuns.get(tenantId, runId);
  const job = run && (await deps.jobs.find(tenantId, run.jobId));
  if (!run?.end || !job || isFinal(job.status)) return true;
  return deps.jobs.held.end(run.jobId, { result: toResult(run, run.end) });
}
