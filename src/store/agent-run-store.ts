import type { Db } from "mongodb";
import type { ErrorView } from "../lib/errors.ts";
import type { AgentDefinition } from "./agent-store.ts";
import { type AuditPassage, auditCollection } from "./audit-store.ts";
import type { RunCallback } from "./callback-store.ts";
import { defineCollection, ofTenant } from "./collection.ts";
import type { StoredCaller } from "./key-store.ts";
import { findPage, ofKey, type Page, type PageQuery, type Shown } from "./page.ts";
import { makeWorkRecords } from "./records.ts";
import { type CountedRun, countRuns, type PartOfRun } from "./run-use.ts";
import { makeUseStore } from "./use-store.ts";
import { updateIf } from "./writes.ts";

/** How a run can have ended. */
export const agentRunEnds = ["completed", "stopped", "failed", "cancelled"] as const;
export type AgentRunEnd = (typeof agentRunEnds)[number];

/** Why a run was stopped. */
export const stopReasons = [
  "max_iterations",
  "timeout",
  "max_tokens",
  "max_cost",
  "max_depth",
  "budget_exhausted",
  "parent_stopped",
  /** Nobody decided on a call in time, whose tool says that the run stops then. */
  "approval_expired",
  /** The model's last answer was cut, or filtered. */
  "length",
  "content_filter",
] as const;
export type StopReason = (typeof stopReasons)[number];

/**
 * What a suspended run, or one that it has called, waits for. `until`: when that is over at the latest; absent of the job of a
 * tool call.
 */
export type AwaitedByRun = {
  kind: "approval" | "time" | "event" | "job";
  runId: string;
  until?: Date;
  approvalId?: string;
  jobId?: string;
  toolName?: string;
  event?: string;
};

/** What a run may use. Times in ms; that of a run is its time at work. */
export type RunLimits = { timeoutMs: number; maxTokens?: number; maxCostUsd?: number };

/** How a run ended. */
export type RunEnd = {
  status: AgentRunEnd;
  output: string;
  reason?: StopReason;
  error?: ErrorView;
  /** Iterations: answers of the model. */
  steps: number;
  tokensUsed: number;
  /** Iterations that a model wrote. Absent in older records. */
  outputTokens?: number;
  costUsd: number;
  /** What the output rests on; absent if the run has searched no documents. */
  citations?: (Pick<AuditPassage, "documentId" | "chunkId" | "title" | "page" | "heading"> & {
    quote: string;
    url?: string;
  })[];
  /** Number of its audit entries, and the hash of the last one: what the chain must lead to. */
  entries: number;
  head: string;
  finishedAt: Date;
};

/** One message of the conversation before a run. */
export type RunTurn = { role: "system" | "user" | "assistant"; content: string };

/** A run of an agent. What happened in it is in its audit entries. */
export type AgentRunRecord = CountedRun & {
  agentId: string;
  /** The agent as it was when the run was accepted. */
  agentVersion: number;
  definition: AgentDefinition;
  /** For a sub-agent's run: the job of the outermost run. */
  jobId: string;
  /** Who asked for the run. Its calls are billed to them and have their rights. */
  caller: StoredCaller;
  input: string;
  /** The conversation before the run, as the caller gave it. */
  history?: RunTurn[];
  sessionId?: string;
  /** JSON text of the caller's own. */
  context?: string;
  limits: RunLimits;
  /** Where its approvals are reported. */
  callback?: RunCallback;
  /** 1 for a run that was asked for; one more for each agent that called the next as a tool. */
  depth: number;
  /** The run that started this one by a tool call. */
  parentRunId?: string;
  /** The outermost run; absent for a run that no other one started. */
  rootRunId?: string;
  /** Runs of all kinds that the tools of this outermost run, and of those inside of it, have started. */
  startedRuns?: number;
  /** How long workers have worked on it, in ms, but for the turn that is under way. */
  workedMs?: number;
  /** What it awaited when it was suspended last. Whether it still does is known by its job. */
  awaiting?: AwaitedByRun[];
  /** The runs inside of it that were suspended with it. */
  suspendedRuns?: string[];
  end?: RunEnd;
};

const shown = [
  "agentId",
  "agentVersion",
  "jobId",
  "parentRunId",
  "sessionId",
  "createdAt",
  "startedAt",
  "awaiting",
] as const;
const shownOfEnd = ["status", "reason", "steps", "tokensUsed", "costUsd", "finishedAt"] as const;

const listed = [...shown, ...shownOfEnd.map((field) => `end.${field}`)];

/** What a list shows of a run. */
export type AgentRunSummaryRecord = Shown<AgentRunRecord, typeof shown> & {
  end?: Pick<RunEnd, (typeof shownOfEnd)[number]>;
};

/** Input and answer of a run: one turn of its session. */
export type AgentTurn = Pick<AgentRunRecord, "_id" | "input"> & { end: Pick<RunEnd, "output"> };

/** What a sweep needs of a run, to see whether it is over. */
export type OpenAgentRun = Pick<AgentRunRecord, "_id" | "tenantId" | "jobId">;

export const agentRunCollection = defineCollection<AgentRunRecord>({
  name: "agentRuns",
  indexes: [
    { key: { tenantId: 1, agentId: 1, _id: -1 }, name: "agent_newest" },
    {
      key: { tenantId: 1, agentId: 1, sessionId: 1, _id: -1 },
      name: "session_newest",
      partialFilterExpression: { sessionId: { $exists: true } },
    },
    { key: { isOpen: 1, updatedAt: 1 }, name: "open", partialFilterExpression: { isOpen: true } },
  ],
});

/** When sweeps come back to a run whose wait has no end that is known, in ms. */
const LOOK_AGAIN_AFTER_MS = 3_600_000;

export function makeAgentRunStore(db: Db) {
  const runs = db.collection<AgentRunRecord>(agentRunCollection.name);
  const { update, ...records } = makeWorkRecords(runs, { watched: { isOpen: true }, fields: ["tenantId", "jobId"] });
  const parts = db.collection<PartOfRun>(auditCollection.name);
  const { settle, ...counted } = countRuns(runs, { records, use: makeUseStore(db), parts });
  return {
    ...records,
    ...counted,
    /** A run of any tenant; for the operator's own commands. */
    getForOperator: (runId: string) => runs.findOne<AgentRunRecord>({ _id: runId }),
    list(
      tenantId: string,
      agentId: string,
      { sessionId, keyId, ...page }: PageQuery & { sessionId?: string | undefined; keyId?: string | undefined },
    ): Promise<Page<AgentRunSummaryRecord>> {
      const filter = { agentId, ...(sessionId === undefined ? {} : { sessionId }) };
      const matches = ofKey(keyId, ({ caller }: AgentRunRecord) => caller.keyId);
      return findPage(runs, { tenantId, page, filter, fields: [...listed, "caller.keyId"], matches });
    },
    /**
     * Runs of a session that were accepted before the run `before` and had answered by `endedBy`, newest first; `keyId`: those of
     * this key alone.
     */
    turns: (
      tenantId: string,
      session: { agentId: string; sessionId: string; before: string; endedBy: Date; limit: number; keyId?: string },
    ): Promise<AgentTurn[]> =>
      runs
        .find(
          ofTenant(tenantId, {
            agentId: session.agentId,
            sessionId: session.sessionId,
            ...(session.keyId === undefined ? {} : { "caller.keyId": session.keyId }),
            _id: { $lt: session.before },
            "end.status": { $in: ["completed" as const, "stopped" as const] },
            "end.finishedAt": { $lte: session.endedBy },
          }),
        )
        .project<AgentTurn>({ input: 1, "end.output": 1 })
        .sort({ _id: -1 })
        .limit(session.limit)
        .toArray(),
    /** Counts one more run inside an outermost run. Returns false if that has started `most` already. */
    countStarted(tenantId: string, rootRunId: string, most: number): Promise<boolean> {
      const hasRoom = { $or: [{ startedRuns: { $exists: false } }, { startedRuns: { $lt: most } }] };
      return updateIf(runs, ofTenant(tenantId, { _id: rootRunId, ...hasRoom }), { $inc: { startedRuns: 1 } });
    },
    /** Notes how long a worker has worked on an open run. */
    work: (tenantId: string, runId: string, ms: number) => update(tenantId, runId, { $inc: { workedMs: ms } }),
    /** Notes what an open run awaits. Sweeps come back to it when the first of it must be over, however many runs wait. */
    await(tenantId: string, runId: string, awaiting: AwaitedByRun[], suspendedRuns: string[]) {
      const later = Date.now() + LOOK_AGAIN_AFTER_MS;
      const updatedAt = new Date(Math.min(...awaiting.map(({ until }) => until?.getTime() ?? later)));
      return update(tenantId, runId, { $set: { awaiting, suspendedRuns, updatedAt } });
    },
    /** Ends an open run. Returns false if it has ended already. */
    async finish(tenantId: string, runId: string, end: RunEnd): Promise<boolean> {
      const $set = { end, updatedAt: end.finishedAt };
      const isEnded = await update(tenantId, runId, { $set, $unset: { isOpen: "" } });
      if (isEnded) await settle(tenantId, runId, end);
      return isEnded;
    },
  };
}
