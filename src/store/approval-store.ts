import type { Db } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { findFirst, findPage, ofKey, type Page, type PageQuery } from "./page.ts";
import { makeRecords } from "./records.ts";
import { changeOne } from "./writes.ts";

/** `cancelled`: its run ended without it. */
export const approvalStates = ["pending", "approved", "rejected", "expired", "cancelled"] as const;
export type ApprovalState = (typeof approvalStates)[number];

/** A decision that a run waits for. Its state decides; what wakes the run up only follows it. */
export type ApprovalRecord = TenantOwned & {
  workflowId: string;
  workflowName: string;
  runId: string;
  /** The key that started its run. */
  keyId?: string;
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
  /** Set from the decision until the run knows of it. */
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

export function makeApprovalStore(db: Db) {
  const approvals = db.collection<ApprovalRecord>(approvalCollection.name);
  const { ensure, get } = makeRecords(approvals);
  return {
    ensure,
    get,
    /** Approvals in a state. */
    list: (
      tenantId: string,
      { status, keyId, ...page }: PageQuery & { status: ApprovalState; keyId?: string | undefined },
    ): Promise<Page<ApprovalRecord>> =>
      findPage(approvals, { tenantId, page, filter: { status }, matches: ofKey(keyId, (record) => record.keyId) }),
    /** Decides one that is pending, and not over unless it is to expire; null when it is not: then nothing has changed. */
    decide(tenantId: string, approvalId: string, { status, ...by }: Decision, now: Date) {
      const inTime = status === "approved" || status === "rejected" ? { expiresAt: { $gt: now } } : {};
      const pending = ofTenant(tenantId, { _id: approvalId, status: "pending" as const, ...inTime });
      return changeOne(approvals, pending, { $set: { status, ...by, decidedAt: now, unsettledSince: now } });
    },
    /** Notes that the run knows. */
    async settle(tenantId: string, approvalId: string): Promise<void> {
      await approvals.updateOne(ofTenant(tenantId, { _id: approvalId }), { $unset: { unsettledSince: "" } });
    },
    /** Pending ones whose time was over at `now`, of one tenant or across tenants. */
    overdue(now: Date, { limit, tenantId }: { limit: number; tenantId?: string }) {
      const pending = { status: "pending" as const, expiresAt: { $lte: now } };
      const filter = tenantId === undefined ? pending : ofTenant(tenantId, pending);
      return findFirst(approvals, filter, { by: "expiresAt", limit });
    },
    /** Decided ones, of all tenants, whose run does not know since `before`. */
    unsettled: (before: Date, limit: number) =>
      findFirst(approvals, { unsettledSince: { $lt: before } }, { by: "unsettledSince", limit }),
  };
}
