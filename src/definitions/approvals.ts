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
