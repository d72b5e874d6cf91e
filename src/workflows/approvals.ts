import { sweepEach } from "../jobs/sweep-each.ts";
import { defined } from "../lib/defined.ts";
import { AppError, notFound } from "../lib/errors.ts";
import type { ApprovalRecord, ApprovalState } from "../store/approval-store.ts";
import { mapPage, type Page, type PageQuery } from "../store/page.ts";
import type { WorkflowRunRecord } from "../store/workflow-run-store.ts";
import { type Caller, hasRole, maySee, ownKeyOf } from "../tenancy/roles.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { toResult } from "./run-result.ts";
import { isOverdue, readRun, toApprovalView } from "./run-view.ts";
import type { ApprovalDetail, ApprovalView, DecisionInput, DecisionResult } from "./schemas.ts";
import { toDecisionOutput } from "./steps/human-approval.ts";
import { withdrawApprovals } from "./withdraw-approvals.ts";

/** Approvals of each kind in one round, and rounds of one pass: many may expire at the same time. */
const SWEPT = 100;
const MAX_ROUNDS = 20;
/** How long a decision may stay without effect on its run until a sweep repeats it, in ms. */
const SETTLE_AGAIN_AFTER_MS = 5_000;

export type ApprovalQuery = PageQuery & { status: ApprovalState };

/** Decisions of people. The approval's own state decides, by one compare-and-set; what happens to the run follows it. */
export function makeApprovals(deps: WorkflowsDeps) {
  const { approvals, workflowRuns } = deps.store;
  const expire = async ({ tenantId, _id }: Pick<ApprovalRecord, "tenantId" | "_id">) => {
    const expired = await approvals.decide(tenantId, _id, { status: "expired" }, new Date());
    if (expired) await settle(deps, expired);
    return expired;
  };
  /** Ends approvals that are overdue, of one tenant before it reads, or of all. */
  const expireOverdue = async (tenantId?: string): Promise<void> => {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const overdue = await approvals.overdue(new Date(), { limit: SWEPT, ...defined({ tenantId }) });
      for (const approval of overdue) await expire(approval);
      if (overdue.length < SWEPT) return;
    }
  };
  /** An approval as it is now: one whose time is over expires here, before the sweep finds it. */
  const find = async (caller: Caller, approvalId: string): Promise<ApprovalRecord> => {
    const approval = await approvals.get(caller.tenantId, approvalId);
    if (!approval || !maySee(caller, approval.keyId)) throw notFound("approval");
    if (approval.status !== "pending" || !isOverdue(approval)) return approval;
    return (await expire(approval)) ?? find(caller, approvalId);
  };
  const runOf = async ({ tenantId, runId }: ApprovalRecord) => {
    const run = await workflowRuns.get(tenantId, runId);
    if (!run) throw notFound("run");
    return readRun(deps, run);
  };
  return {
    /** Approvals in one state, the newest first. */
    async approvals(caller: Caller, query: ApprovalQuery): Promise<Page<ApprovalView>> {
      const { tenantId } = caller;
      await expireOverdue(tenantId);
      return mapPage(await approvals.list(tenantId, { ...query, keyId: ownKeyOf(caller) }), toApprovalView);
    },
    /** @throws AppError `not_found`. */
    async approval(caller: Caller, approvalId: string): Promise<ApprovalDetail> {
      const approval = await find(caller, approvalId);
      const mayDecide = approval.status === "pending" && hasRole(caller.role, approval.assigneeRole);
      return { ...toApprovalView(approval), run: await runOf(approval), mayDecide };
    },
    /** The decision that an open run awaits, and whether the caller may make it; null when it awaits none. */
    async awaited(caller: Caller, runId: string): Promise<(ApprovalView & { mayDecide: boolean }) | null> {
      const run = await workflowRuns.get(caller.tenantId, runId);
      if (!run?.awaiting || run.end) return null;
      const approval = await find(caller, run.awaiting.approvalId);
      if (approval.status !== "pending") return null;
      return { ...toApprovalView(approval), mayDecide: hasRole(caller.role, approval.assigneeRole) };
    },
    expireOverdue,
    /** @throws AppError `not_found`, `insufficient_role`; `wrong_state` when it was decided, or its time is over. */
    async decide(caller: Caller, approvalId: string, { decision, comment }: DecisionInput): Promise<DecisionResult> {
      const { assigneeRole } = await find(caller, approvalId);
      if (!hasRole(caller.role, assigneeRole)) {
        throw new AppError("insufficient_role", `This decision is for the role ${assigneeRole}.`);
      }
      const by = { decidedBy: caller.subject, ...(comment === undefined ? {} : { comment: comment.toWellFormed() }) };
      const decided = await approvals.decide(caller.tenantId, approvalId, { status: decision, ...by }, new Date());
      if (!decided) throw toRejection(await find(caller, approvalId));
      await settle(deps, decided);
      return { ...toApprovalView(decided), runStatus: (await runOf(decided)).status };
    },
    /** Lets approvals expire, and resumes runs whose decision did not reach them. Run it on a schedule. */
    async sweepApprovals(): Promise<void> {
      await expireOverdue();
      const before = new Date(Date.now() - SETTLE_AGAIN_AFTER_MS);
      await sweepEach(await approvals.unsettled(before, SWEPT), (approval) => settle(deps, approval));
    },
  };
}

/** Why a decision comes too late, with the first one. */
function toRejection(approval: ApprovalRecord): AppError {
  const { status } = approval;
  const message = status === "expired" ? "The time to decide is over." : `It is ${status} already.`;
  return new AppError("wrong_state", message, { details: toApprovalView(approval) });
}

/**
 * Applies a decision to its run: approved, the run resumes; otherwise it ends here, without a worker. Safe to repeat. A run
 * whose worker is about to release it is left to that worker, which reads the decision, and to the next sweep.
 */
async function settle(deps: WorkflowsDeps, approval: ApprovalRecord): Promise<void> {
  const { approvals, workflowRuns } = deps.store;
  const { tenantId, _id, runId, status, seenLease } = approval;
  const run = await workflowRuns.get(tenantId, runId);
  if (!run) return approvals.settle(tenantId, _id);
  if (status === "approved") {
    const woken = run.end ? true : await deps.waits.wake({ tenantId, jobId: run.jobId, ...defined({ seenLease }) });
    await (woken === true ? approvals.settle(tenantId, _id) : approvals.putOff(approval, woken.lease));
  } else {
    const isEnded = await endRun(deps, run, approval);
    await (isEnded ? approvals.settle(tenantId, _id) : approvals.putOff(approval, undefined));
  }
}

/** Whether the job of a run waits, or has a worker that may let it wait: the decision has to reach it then. */
async function mayWait({ jobs }: WorkflowsDeps, { tenantId, jobId }: WorkflowRunRecord): Promise<boolean> {
  const job = await jobs.find(tenantId, jobId);
  return job?.status === "awaiting" || job?.status === "running";
}

/** Ends a run by a decision, and its job with it; false when a worker has the job, so that it cannot be ended yet. */
async function endRun(deps: WorkflowsDeps, run: WorkflowRunRecord, approval: ApprovalRecord): Promise<boolean> {
  const { workflowRuns } = deps.store;
  const { tenantId, runId, path, stepId, status, createdAt, decidedAt: finishedAt = new Date() } = approval;
  if (status !== "rejected" && status !== "expired") return true; // the run was cancelled
  if (!run.end) {
    await workflowRuns.addStep({
      _id: `${runId}:${path}`,
      tenantId,
      runId,
      seq: ((await workflowRuns.steps(tenantId, runId)).at(-1)?.seq ?? -1) + 1,
      path,
      id: stepId,
      type: "human_approval",
      status: "completed",
      attempts: 1,
      startedAt: createdAt,
      finishedAt,
      output: JSON.stringify(toDecisionOutput(approval)),
    });
    await workflowRuns.finish(tenantId, runId, { status, finishedAt });
    await withdrawApprovals(deps, run);
  }
  const ended = await workflowRuns.get(tenantId, runId);
  if (ended?.end?.status !== status) return true; // it was ended otherwise, and its job with it
  return !(await mayWait(deps, run)) || deps.jobs.held.end(run.jobId, { result: toResult(ended, ended.end) });
}
