import type { Db } from "mongodb";

import { defineCollection, ofTenant } from "./collection.ts";
import { findPage, type Page, type PageQuery } from "./page.ts";
import { insertOrFind } from "./writes.ts";

/** `cancelled`: its run ended without it. */
export const approvalStates = ["pending", "approved", "rejected", "expired", "cancelled"] as const;
export type ApprovalState = (typeof approvalStates)[number];

/** A decision that a run waits for. Its state decides; what wakes the run up only follows it. */
export type ApprovalRecord = {
  _id: string;
  tenantId: string;
  workflowId: string;
  workflowName: string;
  runId: string;
  stepId: string;
  /** Where the step stands in the definition. */
  path: string;
  assigneeRole: "owner" | "admin";
  message?: string;
  status: ApprovalState;
  createdAt: Date;
  expiresAt: Date;
  decidedBy?: string;
  decidedAt?: Date;
  comment?: string;
  /** Set from the decision until the run was told of it. */
  unsettledSince?: Date;
};

export const approvalCollection = defineCollection<ApprovalRecord>({
  name: "approvals",
  indexes: [
    { key: { tenantId: 1, status: 1, _id: -1 }, name: "tenant_status" },
    { key: { expiresAt: 1 }, name: "pending", partialFilterExpression: { status: "pending" } },
    { key: { unsettledSince: 1 }, name: "unsettled", sparse: true },
  ],
});

export type Decision = { status: Exclude<ApprovalState, "pending">; decidedBy?: string; comment?: string };

export type ApprovalStore = {
  /** Adds an approval, unless one of its id is there; answers the one that is there then. */
  ensure(approval: ApprovalRecord): Promise<ApprovalRecord>;
  get(tenantId: string, approvalId: string): Promise<ApprovalRecord | null>;
  /** Approvals in a state. */
  list(tenantId: string, query: PageQuery & { status: ApprovalState }): Promise<Page<ApprovalRecord>>;
  /** Decides one that is pending, and not over unless it is to expire; null when it is not: then nothing has changed. */
  decide(tenantId: string, approvalId: string, decision: Decision, now: Date): Promise<ApprovalRecord | null>;
  /** Notes that the run was told. */
  settle(tenantId: string, approvalId: string): Promise<void>;
  /** Pending ones whose time was over at `now`, of one tenant or across tenants. */
  overdue(now: Date, query: { limit: number; tenantId?: string }): Promise<ApprovalRecord[]>;
  /** Decided ones, whosever, whose run was not told since `before`. */
  unsettled(before: Date, limit: number): Promise<ApprovalRecord[]>;
};

export function makeApprovalStore(db: Db): ApprovalStore {
  const approvals = db.collection<ApprovalRecord>(approvalCollection.name);
  return {
    ensure: (approval) => insertOrFind(approvals, approval, ofTenant(approval.tenantId, { _id: approval._id })),
    get: (tenantId, approvalId) => approvals.findOne(ofTenant(tenantId, { _id: approvalId })),
    list: (tenantId, { status, ...page }) => findPage(approvals, { tenantId, page, filter: { status } }),
    decide: (tenantId, approvalId, { status, ...by }, now) =>
      approvals.findOneAndUpdate(
        ofTenant(tenantId, {
          _id: approvalId,
          status: "pending" as const,
          ...(status === "approved" || status === "rejected" ? { expiresAt: { $gt: now } } : {}),
        }),
        { $set: { status, ...by, decidedAt: now, unsettledSince: now } },
        { returnDocument: "after" },
      ),
    settle: async (tenantId, approvalId) =>
      void (await approvals.updateOne(ofTenant(tenantId, { _id: approvalId }), { $unset: { unsettledSince: "" } })),
    overdue: (now, { limit, tenantId }) =>
      approvals
        .find({ ...(tenantId === undefined ? {} : { tenantId }), status: "pending", expiresAt: { $lte: now } })
        .sort({ expiresAt: 1 })
        .limit(limit)
        .toArray(),
    unsettled: (before, limit) =>
      approvals
        .find({ unsettledSince: { $lt: before } })
        .sort({ unsettledSince: 1 })
        .limit(limit)
        .toArray(),
  };
}
