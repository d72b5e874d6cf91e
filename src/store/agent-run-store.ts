import type { Db, Filter } from "mongodb";
import type { RunEnd, RunLimits } from "../agents/run-state.ts";
import type { Role } from "../tenancy/roles.ts";
import type { AgentDefinition } from "./agent-store.ts";
import { defineCollection, ofTenant } from "./collection.ts";
import { isDuplicateKey } from "./tenant-store.ts";

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
  /** An agent's runs, the newest first, from before the id `before`. */
  list(
    tenantId: string,
    agentId: string,
    query: { limit: number; before?: string; sessionId?: string },
  ): Promise<AgentRunRecord[]>;
  /** Runs of a session that were accepted before the run `before` and had answered by `endedBy`, newest first. */
  turns(
    tenantId: string,
    session: { agentId: string; sessionId: string; before: string; endedBy: Date; limit: number },
  ): Promise<AgentRunRecord[]>;
  /** Notes that an open run is run now; its start is that of the first time. Null when it has ended. */
  begin(tenantId: string, runId: string): Promise<AgentRunRecord | null>;
  /** Ends a run that is open. */
  finish(tenantId: string, runId: string, end: RunEnd): Promise<void>;
  remove(tenantId: string, runId: string): Promise<void>;
  /** Open runs, whosever, that were not touched since `before`; the longest untouched first. */
  unfinished(query: { before: Date; limit: number }): Promise<AgentRunRecord[]>;
  /** Puts an open run at the end of `unfinished`. */
  touch(tenantId: string, runId: string): Promise<void>;
};

export function makeAgentRunStore(db: Db): AgentRunStore {
  const runs = db.collection<AgentRunRecord>(agentRunCollection.name);
  const open = (tenantId: string, runId: string): Filter<AgentRunRecord> =>
    ofTenant(tenantId, { _id: runId, isOpen: true as const });
  const before = (id: string | undefined) => (id === undefined ? {} : { _id: { $lt: id } });
  return {
    async ensure(run) {
      try {
        await runs.insertOne(run);
        return run;
      } catch (error) {
        const there = isDuplicateKey(error) ? await runs.findOne(ofTenant(run.tenantId, { _id: run._id })) : null;
        if (there) return there;
        throw error;
      }
    },
    get: (tenantId, runId) => runs.findOne(ofTenant(tenantId, { _id: runId })),
    getForOperator: (runId) => runs.findOne({ _id: runId }),
    list: (tenantId, agentId, { limit, before: id, sessionId }) =>
      runs
        .find(ofTenant(tenantId, { agentId, ...(sessionId === undefined ? {} : { sessionId }), ...before(id) }))
        .sort({ _id: -1 })
        .limit(limit)
        .toArray(),
    turns: (tenantId, { agentId, sessionId, before: id, endedBy, limit }) =>
      runs
        .find(
          ofTenant(tenantId, {
            agentId,
            sessionId,
            ...before(id),
            "end.status": { $in: ["completed" as const, "stopped" as const] },
            "end.finishedAt": { $lte: endedBy },
          }),
        )
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
        .sort({ updatedAt: 1 })
        .limit(limit)
        .toArray(),
    touch: async (tenantId, runId) =>
      void (await runs.updateOne(open(tenantId, runId), { $set: { updatedAt: new Date() } })),
  };
}
