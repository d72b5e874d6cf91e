import type { Collection, Db, Filter } from "mongodb";
import { firstIdAt, type IdKind } from "../ids.ts";
import { type AgentRunRecord, agentRunCollection } from "./agent-run-store.ts";
import { type AuditEntry, auditCollection } from "./audit-store.ts";
import { ofTenant, type TenantDocument } from "./collection.ts";
import { type CompletionDocument, completionsCollection } from "./completion-store.ts";
import {
  type WorkflowRunRecord,
  type WorkflowStepRecord,
  workflowRunCollection,
  workflowStepCollection,
} from "./workflow-run-store.ts";

/** Records that one call removes at most: each takes a moment of everybody's store. */
export const REMOVED_AT_A_TIME = 200;

/**
 * Removes what is older than a time, the oldest first and a bounded number at once. Each function returns how many it has removed.
 * An id holds the time when it was made, so that no further index is needed.
 */
export function makeRetentionStore(db: Db) {
  const completions = db.collection<CompletionDocument>(completionsCollection.name);
  const workflowRuns = db.collection<WorkflowRunRecord>(workflowRunCollection.name);
  const workflowSteps = db.collection<WorkflowStepRecord>(workflowStepCollection.name);
  const agentRuns = db.collection<AgentRunRecord>(agentRunCollection.name);
  const auditSteps = db.collection<AuditEntry>(auditCollection.name);
  return {
    async removeCallLogs(before: Date): Promise<number> {
      const ids = (await findOld(completions, { kind: "log", before })).map(({ _id }) => _id);
      return removeAll(completions, ids);
    },
    /** Of runs that have ended, with the results of their steps. */
    async removeWorkflowRuns(before: Date): Promise<number> {
      const old = await findOld(workflowRuns, { kind: "workflowRun", before, filter: { end: { $exists: true } } });
      for (const { _id, tenantId } of old) await workflowSteps.deleteMany(ofTenant(tenantId, { runId: _id }));
      return removeAll(
        workflowRuns,
        old.map(({ _id }) => _id),
      );
    },
    /** Of runs that have ended, with their audit logs. */
    async removeAgentRuns(before: Date): Promise<number> {
      const old = await findOld(agentRuns, { kind: "run", before, filter: { end: { $exists: true } } });
      for (const { _id, tenantId } of old) await auditSteps.deleteMany(ofTenant(tenantId, { runId: _id }));
      return removeAll(
        agentRuns,
        old.map(({ _id }) => _id),
      );
    },
  };
}

/** The oldest records of a kind that were made before a time. */
function findOld<T extends TenantDocument>(
  collection: Collection<T>,
  { kind, before, filter }: { kind: IdKind; before: Date; filter?: Filter<T> },
): Promise<TenantDocument[]> {
  const old = { _id: { $lt: firstIdAt(kind, before) }, ...filter } as Filter<T>; // of any T, `_id` is a string
  return collection
    .find<TenantDocument>(old, { projection: { tenantId: 1 } })
    .sort({ _id: 1 })
    .limit(REMOVED_AT_A_TIME)
    .toArray();
}

async function removeAll<T extends TenantDocument>(collection: Collection<T>, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) return 0;
  const { deletedCount } = await collection.deleteMany({ _id: { $in: ids } } as unknown as Filter<T>); // likewise
  return deletedCount;
}
