import { defined } from "../lib/defined.ts";
import type { ApprovalRecord } from "../store/approval-store.ts";

/** The message about an approval, as it is now. It holds no arguments: whoever may decide reads those. */
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
  const decision = moment === "requested" ? {} : defined({ decidedBy, decidedAt: decidedAt?.toISOString(), comment });
  return {
    type: `approval.${moment}`,
    timestamp: (moment === "requested" ? createdAt : (decidedAt ?? createdAt)).toISOString(),
    data: {
      approvalId,
      ...of,
      runId,
      status: moment === "requested" ? "pending" : status,
      assigneeRole,
      expiresAt: expiresAt.toISOString(),
      ...decision,
    },
  };
}
