import type { Db } from "mongodb";
import { type AwaitedRecord, awaitedIndexes, makeAwaited } from "./awaited.ts";
import type { RunCallback } from "./callback-store.ts";
import { defineCollection, ofTenant } from "./collection.ts";
import { findPage, fitsAll, holdsText, inTime, type Page, type PageQuery, type Times } from "./page.ts";
import { makeRecords } from "./records.ts";

/** `cancelled`: its run ended without a decision. */
export const approvalStates = ["pending", "approved", "rejected", "expired", "cancelled"] as const;
type ApprovalState = (typeof approvalStates)[number];

type Asked = AwaitedRecord & {
  runId: string;
  /** The key that started its run. */
  keyId?: string;
  /** Its subject; approvals of earlier releases have none. */
  startedBy?: string;
  assigneeRole: "owner" | "admin";
  message?: string;
  status: ApprovalState;
  decidedBy?: string;
  decidedAt?: Date;
  comment?: string;
  /** Set at its beginning and its end, until the webhooks of its tenant were told. */
  isUntold?: true;
  /** Where the asking and the decision are reported. */
  callback?: RunCallback;
};

/** A decision that a step of a workflow's run waits for. Records of earlier releases have no `kind`. */
export type WorkflowApproval = Asked & {
  kind?: "workflow";
  workflowId: string;
  workflowName: string;
  stepId: string;
  /** Where the step stands in the definition. */
  path: string;
};

/** A decision that a tool call of an agent's run waits for. */
export type AgentApproval = Asked & {
  kind: "agent";
  /** The job that is suspended: of a sub-agent's run, that of the outermost one. */
  jobId: string;
  agentId: string;
  agentName: string;
  callId: string;
  toolName: string;
  /** The canonical JSON of the call's arguments, and its SHA-256 in hex: the call is made with these or not at all. */
  arguments: string;
  argumentsHash: string;
  /** Whether the key that started the run may decide; absent: by the default of the agents' area. */
  allowSelfApproval?: boolean;
};

export type ApprovalRecord = WorkflowApproval | AgentApproval;

export const approvalCollection = defineCollection<ApprovalRecord>({
  name: "approvals",
  indexes: [
    { key: { tenantId: 1, status: 1, _id: -1 }, name: "tenant_status" },
    ...awaitedIndexes,
    { key: { isUntold: 1 }, name: "untold", sparse: true },
    { key: { tenantId: 1, runId: 1 }, name: "run" },
  ],
});

/** Which approvals are listed; `keyId`: of runs that this key has started; `q`: with this text in a name or the message. */
export type ApprovalQuery = PageQuery &
  Times & {
    status: ApprovalState;
    keyId?: string | undefined;
    agentId?: string | undefined;
    workflowId?: string | undefined;
    q?: string | undefined;
  };

const textsOf = (record: ApprovalRecord) =>
  record.kind === "agent"
    ? [record.agentName, record.toolName, record.message, record.startedBy]
    : [record.workflowName, record.stepId, record.message, record.startedBy];

export type Decision = { status: Exclude<ApprovalState, "pending">; decidedBy?: string; comment?: string };

export function makeApprovalStore(db: Db) {
  const approvals = db.collection<ApprovalRecord>(approvalCollection.name);
  const { ensure, get } = makeRecords(approvals);
  const { end, ...awaited } = makeAwaited(approvals);
  return {
    ...awaited,
    ensure: (approval: ApprovalRecord) => ensure({ ...approval, isUntold: true }),
    get,
    /** Those of all tenants that were asked for, or have ended, and whose webhooks were not told. */
    untold: (limit: number): Promise<ApprovalRecord[]> => approvals.find({ isUntold: true }).limit(limit).toArray(),
    /** Notes that the webhooks know it in this state. */
    async told({ tenantId, _id, status }: ApprovalRecord): Promise<void> {
      await approvals.updateOne(ofTenant(tenantId, { _id, status }), { $unset: { isUntold: "" } });
    },
    /** Approvals in a state. */
    list(tenantId: string, { status, q, from, to, ...query }: ApprovalQuery): Promise<Page<ApprovalRecord>> {
      const { keyId, agentId, workflowId, ...page } = query;
      const matches = fitsAll<ApprovalRecord>([
        keyId !== undefined && ((record) => record.keyId === keyId),
        agentId !== undefined && ((record) => record.kind === "agent" && record.agentId === agentId),
        workflowId !== undefined && ((record) => record.kind !== "agent" && record.workflowId === workflowId),
        q !== undefined && ((record) => holdsText(q, textsOf(record))),
      ]);
      return findPage(approvals, { tenantId, ...inTime("approval", { from, to }, page), filter: { status }, matches });
    },
    /**
     * Decides a pending approval whose time is not over, or lets it expire. Returns null, and changes nothing, if it is not in
     * that state.
     */
    decide(tenantId: string, approvalId: string, { status, ...by }: Decision, now: Date) {
      const inTime = status === "approved" || status === "rejected" ? { expiresAt: { $gt: now } } : {};
      return end(
        { tenantId, _id: approvalId },
        { status, ...by, decidedAt: now, isUntold: true },
        { now, filter: inTime },
      );
    },
  };
}
