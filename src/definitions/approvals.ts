import { defined } from "../lib/defined.ts";
import type { ApprovalRecord } from "../store/approval-store.ts";
import type { CallbackRecord } from "../store/callback-store.ts";
import type { Store } from "../store/store.ts";

type ApprovalStores = Pick<Store, "approvals" | "callbacks">;

/** When a message is due: an approval was asked for; or it was decided on, expired or was withdrawn. */
type Moment = NonNullable<CallbackRecord["about"]>["moment"];

/** Records an approval, unless it is there. Its message comes first: without the approval it is not sent. */
export async function askApproval<A extends ApprovalRecord>(store: ApprovalStores, approval: A) {
  await announce(store, approval, "requested");
  return store.approvals.ensure(approval);
}

/**
 * Brings a decision to its run by `apply`, and reports it. Safe to repeat. `apply` answers true when the run knows of it, else the
 * lease under which its job runs, for the sweep that asks again.
 */
export async function settleApproval(
  store: ApprovalStores,
  approval: ApprovalRecord,
  apply: () => Promise<true | { lease: string | undefined }>,
): Promise<void> {
  const isFirst = approval.seenLease === undefined;
  if (isFirst) await announce(store, approval, "decided");
  const known = await apply();
  if (known === true) await store.approvals.settle(approval.tenantId, approval._id);
  else await store.approvals.putOff(approval, known.lease);
}

async function announce({ callbacks }: ApprovalStores, approval: ApprovalRecord, moment: Moment): Promise<void> {
  const { _id, tenantId, callback } = approval;
  if (callback === undefined) return;
  const now = new Date();
  const about = { approvalId: _id, moment };
  await callbacks.ensure({ _id: `${_id}:${moment}`, tenantId, ...callback, about, createdAt: now, nextAt: now });
}

/** The message about an approval, as it is now. It holds no arguments: whoever may decide reads those. */
export function toApprovalMessage(approval: ApprovalRecord, moment: Moment) {
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
