import type { Db, Filter } from "mongodb";
import type { ErrorView } from "../errors.ts";
import type { AgentDefinition } from "./agent-store.ts";
import { defineCollection, ofTenant } from "./collection.ts";
import type { Role } from "./key-store.ts";
import { findPage, type Page, type PageQuery } from "./page.ts";
import { insertOrFind } from "./writes.ts";

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
] as const;
export type StopReason = (typeof stopReasons)[number];

/** What a run may use. Times in ms. */
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
  costUsd: number;
  /** Number of its audit entries, and the hash of the last one: what the chain must lead to. */
  entries: number;
  head: string;
  finishedAt: Date;
};

/** A run of an agent. What happened in it is in its audit entries; whether it waits or runs is on its job. */
export type AgentRunRecord = {
  _id: string;
  tenantId: string;
  agentId: string;
  /** The agent as it was when the run was accepted. */
  agentVersion: number;
  definition: AgentDefinition;
  /** The job that runs it; of a sub-agent's run that of the outermost one. */
  jobId: string;
  /** Who asked for it: its calls are counted to them, and may do what they may. */
  caller: { keyId: string; subject: string; role: Role };
  input: string;
  sessionId?: string;
  /** JSON text of the caller's own. */
  context?: string;
  limits: RunLimits;
  /** 1 for a run that was asked for; one more for each agent that called the next as a tool. */
  depth: number;
  /** The run whose tool call this one is. */
  parentRunId?: string;
  /** Set until the run has ended. */
  isOpen?: true;
  end?: RunEnd;
  createdAt: Date;
  updatedAt: Date;
  /** When it was begun first, whoever went on with it. */
  startedAt?: Date;
};

/** What a list shows of a run. */
export type AgentRunSummaryRecord = Pick<
  AgentRunRecord,
  "_id" | "agentId" | "agentVersion" | "jobId" | "parentRunId" | "sessionId" | "createdAt" | "startedAt"
> & { end?: Pick<RunEnd, "status" | "reason" | "steps" | "tokensUsed" | "costUsd" | "finishedAt"> };

const summaryFields = {
  agentId: 1,
  agentVersion: 1,
  jobId: 1,
  parentRunId: 1,
  sessionId: 1,
  createdAt: 1,
  startedAt: 1,
  "end.status": 1,
  "end.reason": 1,
  "end.steps": 1,
  "end.tokensUsed": 1,
  "end.costUsd": 1,
  "end.finishedAt": 1,
} as const;

/** What was said in a run: a turn of its session. */
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

export type AgentRunStore = {
  /** Adds a run, unless one of its id is there; answers the one that is there then. */
  ensure(run: AgentRunRecord): Promise<AgentRunRecord>;
  get(tenantId: string, runId: string): Promise<AgentRunRecord | null>;
  /** A run of whatever tenant; for the operator's own commands. */
  getForOperator(runId: string): Promise<AgentRunRecord | null>;
  list(
    tenantId: string,
    agentId: string,
    query: PageQuery & { sessionId?: string | undefined },
  ): Promise<Page<AgentRunSummaryRecord>>;
  /** Runs of a session that were accepted before the run `before` and had answered by `endedBy`, newest first. */
  turns(
    tenantId: string,
    session: { agentId: string; sessionId: string; before: string; endedBy: Date; limit: number },
  ): Promise<AgentTurn[]>;
  /** Notes that an open run is run now; its start is that of the first time. Null when it has ended. */
  begin(tenantId: string, runId: string): Promise<AgentRunRecord | null>;
  /** Ends a run that is open. */
  finish(tenantId: string, runId: string, end: RunEnd): Promise<void>;
  remove(tenantId: string, runId: string): Promise<void>;
  /** Open runs, whosever, that were not touched since `before`; the longest untouched first. */
  unfinished(query: { before: Date; limit: number }): Promise<OpenAgentRun[]>;
  /** Puts an open run at the end of `unfinished`. */
  touch(tenantId: string, runId: string): Promise<void>;
};

export function makeAgentRunStore(db: Db): AgentRunStore {
  const runs = db.collection<AgentRunRecord>(agentRunCollection.name);
  const open = (tenantId: string, runId: string): Filter<AgentRunRecord> =>
    ofTenant(tenantId, { _id: runId, isOpen: true as const });
  return {
    ensure: (run) => insertOrFind(runs, run, ofTenant(run.tenantId, { _id: run._id })),
    get: (tenantId, runId) => runs.findOne(ofTenant(tenantId, { _id: runId })),
    getForOperator: (runId) => runs.findOne({ _id: runId }),
    list: (tenantId, agentId, { sessionId, ...page }) =>
      findPage(runs, {
        tenantId,
        page,
        filter: { agentId, ...(sessionId === undefined ? {} : { sessionId }) },
        fields: summaryFields,
      }),
    turns: (tenantId, { agentId, sessionId, before, endedBy, limit }) =>
      runs
        .find(
          ofTenant(tenantId, {
            agentId,
            sessionId,
            _id: { $lt: before },
            "end.status": { $in: ["completed" as const, "stopped" as const] },
            "end.finishedAt": { $lte: endedBy },
          }),
        )
        .project<AgentTurn>({ input: 1, "end.output": 1 })
        .sort({ _id: -1 })
        .limit(limit)
        .toArray(),
    begin: (tenantId, runId) => {
      const now = new Date();
      const update = { $min: { startedAt: now }, $set: { updatedAt: now } };
      return runs.findOneAndUpdate(open(tenantId, runId), update, { returnDocument: "after" });
    },
    finish: async (tenantId, runId, end) =>
      void (await runs.updateOne(open(tenantId, runId), {
        $set: { end, updatedAt: end.finishedAt },
        $unset: { isOpen: "" as const },
      })),
    remove: async (tenantId, runId) => void (await runs.deleteOne(ofTenant(tenantId, { _id: runId }))),
    unfinished: ({ before: at, limit }) =>
      runs
        .find({ isOpen: true, updatedAt: { $lt: at } })
        .project<OpenAgentRun>({ tenantId: 1, jobId: 1 })
        .sort({ updatedAt: 1 })
        .limit(limit)
        .toArray(),
    touch: async (tenantId, runId) =>
      void (await runs.updateOne(open(tenantId, runId), { $set: { updatedAt: new Date() } })),
  };
}
