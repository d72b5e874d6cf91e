import { AppError } from "../errors.ts";
import { derivedId } from "../ids.ts";
import { Suspended } from "../jobs/postpone.ts";
import type { WorkContext } from "../jobs/work.ts";
import type { ApprovalRecord } from "../store/approval-store.ts";
import type { WorkflowRunRecord } from "../store/workflow-run-store.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { fillStep } from "./fill-step.ts";
import type { PlannedStep } from "./plan.ts";
import type { ScopeTexts } from "./scope-texts.ts";
import { DEFAULT_WAIT_MS, type HumanApprovalStep } from "./step-schemas.ts";

/** Longest message that an approver is shown, in characters. */
const MAX_MESSAGE = 20_000;

/**
 * The decision of an approval step; asks for it where nobody has been asked yet.
 * @throws Suspended while it is pending; AppError `invalid_request` for a message that cannot be filled, `cancelled`.
 */
export async function askApproval(asking: {
  deps: Pick<WorkflowsDeps, "store" | "evaluator">;
  run: WorkflowRunRecord;
  step: HumanApprovalStep;
  planned: PlannedStep;
  scope: ScopeTexts;
  context: Pick<WorkContext, "signal">;
}): Promise<ApprovalRecord> {
  const { deps, run, step, planned } = asking;
  const { store } = deps;
  const { tenantId, _id: runId, workflowId, name } = run;
  const approvalId = derivedId("approval", { at: run.createdAt, from: `${runId}:${planned.path}` });
  const there = await store.approvals.get(tenantId, approvalId);
  const { assigneeRole, timeoutMs = DEFAULT_WAIT_MS } = step;
  const { message } = there ? there : await fillStep(asking);
  const now = new Date();
  const approval =
    there ??
    (await store.approvals.ensure({
      _id: approvalId,
      tenantId,
      workflowId,
      workflowName: name,
      runId,
      stepId: planned.id,
      path: planned.path,
      assigneeRole,
      ...(message === undefined ? {} : { message: String(message).slice(0, MAX_MESSAGE).toWellFormed() }),
      status: "pending",
      createdAt: now,
      expiresAt: new Date(now.getTime() + timeoutMs),
    }));
  if (approval.status === "cancelled") throw new AppError("cancelled", "The run was cancelled.");
  if (approval.status !== "pending") return approval;
  const { stepId, path, createdAt: since, expiresAt } = approval;
  await store.workflowRuns.await(tenantId, runId, { approvalId, stepId, path, assigneeRole, since, expiresAt });
  throw new Suspended(async () => (await store.approvals.get(tenantId, approvalId))?.status !== "pending");
}

/** What expressions and readers see of a decision. */
export function toDecisionOutput({ status, comment, decidedBy, decidedAt }: ApprovalRecord) {
  return {
    decision: status,
    comment: comment ?? null,
    decidedBy: decidedBy ?? null,
    decidedAt: decidedAt?.toISOString() ?? null,
  };
}
