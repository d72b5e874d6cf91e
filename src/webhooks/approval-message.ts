import { defined } from "../lib/defined.ts";
import type { ApprovalRecord } from "../store/approval-store.ts";

/**
 * The message about an approval, as it is now, for callbacks and webhooks. It holds no arguments and no texts of the run: whoever
 * may decide reads those.
 */
export function toApprovalMessage(approval: ApprovalRecord, moment: "requested" | "decided") {
  const {
    _id: approvalId,
    runId,
    status,
    assigneeRole,
    createdAt,
    expiresAt,
    decidedBy,
    decidedAt,
    comment,
  } = approval;
  const of =
    approval.kind === "agent"
      ? { kind: approval.kind, agentId: approval.agentId, toolName: approval.toolName, jobId: approval.jobId }
      : { kind: "workflow", workflowId: approval.workflowId, stepId: approval.stepId };
  const about = { approvalId, ...of, runId, assigneeRole, expiresAt: expiresAt.toISOString() };
  if (moment === "requested") {
    const data = { ...about, status: "pending" };
    return { type: "approval.requested", timestamp: createdAt.toISOString(), data } as const;
  }
  const timestamp = (decidedAt ?? createdAt).toISOString();
  const decision = defined({ decidedBy, decidedAt: decidedAt?.toISOString(), comment });
  return { type: "approval.decided", timestamp, data: { ...about, status, ...decision } } as const;
}
