import type { Db } from "mongodb";
import { defineCollection, ofTenant } from "./collection.ts";
import { projectionOf } from "./page.ts";
import { withBytes } from "./run-use.ts";
import { Overtaken } from "./store-errors.ts";
import { insertIfAbsent } from "./writes.ts";

/** One tool call that a model asked for. `arguments` is the text that the model wrote. */
export type AuditCall = { id: string; name: string; arguments: string; idempotencyKey: string };

/** What a model's answer used, as `Spent` of the runs. */
export type AuditSpent = { tokens: number; outputTokens?: number; costUsd: number };

/**
 * A passage of a document that a tool has found. `quote` is the sentence of it that is nearest to what was looked for; `at` and
 * `length` say where the call's output has the passage. Both are absent if the output does not have it as it is.
 */
export type AuditPassage = {
  documentId: string;
  chunkId: string;
  title: string;
  page?: number;
  heading?: string;
  quote?: string;
  /** Where its document was read; only of what a run cites that was called. */
  url?: string;
  at?: number;
  length?: number;
};

/** The contents of an entry. It has texts, numbers and flags only, so that the store returns it unchanged. */
export type AuditContent =
  /** The model answered with tool calls, which are about to be made. */
  | {
      kind: "intention";
      thought: string;
      calls: AuditCall[];
      /** JSON of the turn in its order, where it has reasoning that goes back to its provider; `[]` when it was not kept. */
      parts?: string;
      model: string;
      logId: string;
      spent: AuditSpent;
    }
  /**
   * A tool call has ended. `runId` is the run of the agent that it called, `jobId` the job that it started; `citations`: the
   * passages that it found, or that run cites.
   */
  | {
      kind: "observation";
      callId: string;
      output: string;
      isError: boolean;
      startedAt: string;
      spent: AuditSpent;
      runId?: string;
      jobId?: string;
      citations?: AuditPassage[];
    }
  /** A person was asked whether a tool call may be made, with these arguments by their hash. */
  | {
      kind: "asked";
      callId: string;
      approvalId: string;
      assigneeRole: string;
      argumentsHash: string;
      expiresAt: string;
    }
  /** What was decided on it; `by` and `at` of a person's decision. */
  | {
      kind: "decided";
      callId: string;
      approvalId: string;
      decision: "approved" | "rejected" | "expired";
      by?: string;
      at?: string;
      comment?: string;
    }
  /** The model answered without tool calls: the run is completed, or stopped where the answer was `cut`. */
  | {
      kind: "answer";
      thought: string;
      model: string;
      logId: string;
      spent: AuditSpent;
      cut?: "length" | "content_filter";
    }
  /** A note on how the run was set up, for its readers. */
  | { kind: "notice"; text: string }
  /** The run ended without an answer. */
  | { kind: "end"; status: "stopped" | "failed" | "cancelled"; reason: string; output: string };

/** An entry of a run's trail. It is inserted once and never changed. */
export type AuditEntry = {
  _id: string;
  tenantId: string;
  runId: string;
  /** Place in the trail, from 0. */
  seq: number;
  /** ISO 8601 in UTC, with milliseconds. */
  at: string;
  content: AuditContent;
  /** Hash of the entry before; of the first one the hash of the run itself. */
  previous: string;
  hash: string;
  /** Bytes that the store keeps for the entry. They are not part of the hash. */
  bytes?: number;
};

export const auditCollection = defineCollection<AuditEntry>({
  name: "auditSteps",
  indexes: [{ key: { tenantId: 1, runId: 1, seq: 1 }, name: "run_sequence", unique: true }],
});

export type AuditStore = ReturnType<typeof makeAuditStore>;

/** The store of audit logs. It adds and reads entries; no function changes or removes one. */
export function makeAuditStore(db: Db) {
  const entries = db.collection<AuditEntry>(auditCollection.name);
  return {
    /** @throws Overtaken if the place is taken, because another worker has continued the run. */
    async append(entry: AuditEntry): Promise<void> {
      if (!(await insertIfAbsent(entries, withBytes(entry)))) throw new Overtaken("This run's audit log");
    },
    /** Of a run's entries, in order, what a worker needs to go on with it: a run that waits often reads them again each time. */
    contents: (tenantId: string, runId: string): Promise<Pick<AuditEntry, "content" | "hash">[]> =>
      entries
        .find(ofTenant(tenantId, { runId }))
        .project<Pick<AuditEntry, "content" | "hash">>(projectionOf(["content", "hash"]))
        .sort({ seq: 1 })
        .toArray(),
    /** The entries of a run in order, from the place `from` on. */
    list: (tenantId: string, runId: string, from = 0): Promise<AuditEntry[]> =>
      entries
        .find(ofTenant(tenantId, { runId, seq: { $gte: from } }))
        .sort({ seq: 1 })
        .toArray(),
  };
}
