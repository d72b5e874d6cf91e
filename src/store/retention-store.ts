import type { Collection, Db, Filter } from "mongodb";
import { firstIdAt, type IdKind } from "../lib/ids.ts";
import { type AgentRunRecord, agentRunCollection } from "./agent-run-store.ts";
import { type AnswerRecord, answerCollection } from "./answer-store.ts";
import { type ApprovalRecord, approvalCollection } from "./approval-store.ts";
import { type AuditEntry, auditCollection } from "./audit-store.ts";
import { ofTenant, type TenantOwned } from "./collection.ts";
import { BYTES_BESIDE_TEXTS, type CompletionRecord, completionsCollection, toLogUse } from "./completion-store.ts";
import { aboutUse, toRemoved } from "./run-use.ts";
import { makeUnownedSources } from "./unowned-sources.ts";
import { makeUseStore } from "./use-store.ts";
import { type WorkflowRunRecord, workflowRunCollection } from "./workflow-run-store.ts";
import { openStepCollection, workflowItemCollection, workflowStepCollection } from "./workflow-step-store.ts";

/** Records that one call removes at most: each takes a moment of everybody's store. */
export const REMOVED_AT_A_TIME = 200;

/**
 * Removes what is older than a time, the oldest first and a bounded number at once. Each function returns how many it has removed.
 * An id holds the time when it was made, so that no further index is needed.
 */
export function makeRetentionStore(db: Db) {
  const completions = db.collection<CompletionRecord>(completionsCollection.name);
  const workflowRuns = db.collection<WorkflowRunRecord>(workflowRunCollection.name);
  const ofWorkflowRuns = [workflowStepCollection, workflowItemCollection, openStepCollection].map(({ name }) =>
    db.collection<TenantOwned & { runId: string }>(name),
  );
  const agentRuns = db.collection<AgentRunRecord>(agentRunCollection.name);
  const answers = db.collection<AnswerRecord>(answerCollection.name);
  const auditSteps = db.collection<AuditEntry>(auditCollection.name);
  const approvals = db.collection<ApprovalRecord>(approvalCollection.name);
  const use = makeUseStore(db);
  const removeUnownedSources = makeUnownedSources(db);
  // Another worker may remove the same records at once: only as many count as were removed here.
  const removeRuns = async <T extends TenantOwned>(runs: Collection<T>, old: readonly Removed[]) => {
    for (const { _id, tenantId } of old) await approvals.deleteMany(ofTenant(tenantId, { runId: _id }));
    const removed = await removeAll(runs, old);
    await use.addAll(old.slice(0, removed).flatMap(toRemoved));
    return removed;
  };
  const removeLogs = async (old: readonly Removed[]) => {
    const removed = await removeAll(completions, old);
    await use.addAll(old.slice(0, removed).map((log) => toLogUse(log, -1)));
    return removed;
  };
  return {
    async removeCallLogs(before: Date): Promise<number> {
      return removeLogs(await findOld(completions, { kind: "log", before }));
    },
    /** Of a tenant that keeps too many bytes of them; at least as many logs as have `bytes`. Returns the bytes removed. */
    async removeOldestCallLogs(tenantId: string, bytes: number): Promise<number> {
      const found = await findOldest(completions, ofTenant(tenantId));
      let [sum, count] = [0, 0];
      for (const record of found) {
        if (sum >= bytes) break;
        sum += record.bytes ?? 0;
        count += 1;
      }
      await removeLogs(found.slice(0, count));
      return sum;
    },
    /** Removes the texts of a tenant's call logs that began before a time; the records stay. */
    async removeCallTexts(tenantId: string, before: Date): Promise<number> {
      const texts = { content: { $exists: true } };
      const old = await findOld(completions, { kind: "log", before, filter: ofTenant(tenantId, texts) });
      if (old.length === 0) return 0;
      const ids = old.map(({ _id }) => _id);
      const change = { $unset: { content: "" as const }, $set: { bytes: BYTES_BESIDE_TEXTS } };
      const { modifiedCount } = await completions.updateMany({ _id: { $in: ids }, ...texts }, change);
      const ofTexts = old.flatMap(({ bytes }) =>
        bytes === undefined ? [] : [{ tenantId, bytes: bytes - BYTES_BESIDE_TEXTS }],
      );
      await use.addAll(ofTexts.slice(0, modifiedCount).map((log) => toLogUse(log, -1)));
      return modifiedCount;
    },
    /** Removes answers that were kept with their texts before a time, as call texts are, with their ratings. */
    removeAnswers: async (tenantId: string, before: Date): Promise<number> =>
      removeAll(
        answers,
        await findOld(answers, { kind: "log", before, filter: ofTenant(tenantId, { question: { $exists: true } }) }),
      ),
    /** Sources that no record has; returns at how many it has looked. */
    removeUnownedSources: (now: Date) => removeUnownedSources(now, REMOVED_AT_A_TIME),
    /** Tenants whose call logs have more bytes than a limit. */
    callLogsAbove: use.callLogsAbove,
    /** Deletes ended runs, their step results and approvals. */
    async removeWorkflowRuns(before: Date): Promise<number> {
      const old = await findOld(workflowRuns, { kind: "workflowRun", before, filter: { end: { $exists: true } } });
      for (const { _id, tenantId } of old) {
        for (const parts of ofWorkflowRuns) await parts.deleteMany(ofTenant(tenantId, { runId: _id }));
      }
      return removeRuns(workflowRuns, old);
    },
    /** Deletes ended runs, their audit logs and approvals. */
    async removeAgentRuns(before: Date): Promise<number> {
      const old = await findOld(agentRuns, { kind: "run", before, filter: { end: { $exists: true } } });
      for (const { _id, tenantId } of old) await auditSteps.deleteMany(ofTenant(tenantId, { runId: _id }));
      return removeRuns(agentRuns, old);
    },
  };
}

/** What is read of a record that is about to be removed. Those of earlier releases have no bytes, and do not count. */
type Removed = TenantOwned & { bytes?: number };

/** The oldest records of a kind that were made before a time. */
function findOld<T extends TenantOwned>(
  collection: Collection<T>,
  { kind, before, filter }: { kind: IdKind; before: Date; filter?: Filter<T> },
): Promise<Removed[]> {
  return findOldest(collection, { _id: { $lt: firstIdAt(kind, before) }, ...filter } as Filter<T>); // of any T, `_id` is a string
}

function findOldest<T extends TenantOwned>(collection: Collection<T>, filter: Filter<T>): Promise<Removed[]> {
  const oldest = collection.find<Removed>(filter, { projection: aboutUse }).sort({ _id: 1 });
  return oldest.limit(REMOVED_AT_A_TIME).toArray();
}

async function removeAll<T extends TenantOwned>(
  collection: Collection<T>,
  records: readonly TenantOwned[],
): Promise<number> {
  if (records.length === 0) return 0;
  const ids = records.map(({ _id }) => _id);
  const { deletedCount } = await collection.deleteMany({ _id: { $in: ids } } as unknown as Filter<T>); // likewise
  return deletedCount;
}
