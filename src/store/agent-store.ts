import type { Db } from "mongodb";
import { defineCollection, ofTenant } from "./collection.ts";
import { findPage, type Page, type PageQuery } from "./page.ts";

/** What an agent is told to be, in one version. */
export type AgentDefinition = {
  name: string;
  description?: string | undefined;
  model: string;
  systemPrompt: string;
  /** Each of a type of the agents' area, which checks and reads `config`. */
  tools: {
    type: string;
    name?: string | undefined;
    description?: string | undefined;
    config: Record<string, unknown>;
  }[];
  maxIterations: number;
  temperature?: number | undefined;
  maxTokens?: number | undefined;
};

/** An agent at its latest version. A run keeps the definition that it began with. */
export type AgentRecord = {
  _id: string;
  tenantId: string;
  definition: AgentDefinition;
  /** 1 at creation, one more at each replacement. */
  version: number;
  /** Who made it: they, and admins, may change it. */
  createdBy: string;
  createdAt: Date;
  updatedAt: Date;
};

/** What a list shows of an agent. */
export type AgentSummaryRecord = Omit<AgentRecord, "tenantId" | "definition"> & {
  definition: Pick<AgentDefinition, "name" | "description" | "model"> & { tools: { type: string }[] };
};

const summaryFields = {
  "definition.name": 1,
  "definition.description": 1,
  "definition.model": 1,
  "definition.tools.type": 1,
  version: 1,
  createdBy: 1,
  createdAt: 1,
  updatedAt: 1,
} as const;

export const agentCollection = defineCollection<AgentRecord>({
  name: "agents",
  indexes: [
    { key: { tenantId: 1, _id: -1 }, name: "tenant_newest" },
    { key: { tenantId: 1, "definition.name": 1, _id: -1 }, name: "tenant_name" },
  ],
});

export type AgentStore = {
  insert(agent: AgentRecord): Promise<void>;
  get(tenantId: string, agentId: string): Promise<AgentRecord | null>;
  list(tenantId: string, page: PageQuery): Promise<Page<AgentSummaryRecord>>;
  /** Ids of those with a name, which several may have; the newest first. */
  idsNamed(tenantId: string, name: string, limit: number): Promise<string[]>;
  /** How many agents a tenant has; counts no further than `limit`. */
  count(tenantId: string, limit: number): Promise<number>;
  /** Puts the next version in the place of `version`; null when the agent is not there at that version any more. */
  replace(
    tenantId: string,
    agentId: string,
    next: { version: number; change: { definition: AgentDefinition } },
  ): Promise<AgentRecord | null>;
  /** False when it was not there. */
  remove(tenantId: string, agentId: string): Promise<boolean>;
};

export function makeAgentStore(db: Db): AgentStore {
  const agents = db.collection<AgentRecord>(agentCollection.name);
  return {
    insert: async (agent) => void (await agents.insertOne(agent)),
    get: (tenantId, agentId) => agents.findOne(ofTenant(tenantId, { _id: agentId })),
    list: (tenantId, page) => findPage(agents, { tenantId, page, fields: summaryFields }),
    async idsNamed(tenantId, name, limit) {
      const found = await agents
        .find(ofTenant(tenantId, { "definition.name": name }), { projection: { _id: 1 } })
        .sort({ _id: -1 })
        .limit(limit)
        .toArray();
      return found.map(({ _id }) => _id);
    },
    count: (tenantId, limit) => agents.countDocuments(ofTenant(tenantId), { limit }),
    replace: (tenantId, agentId, { version, change }) =>
      agents.findOneAndUpdate(
        ofTenant(tenantId, { _id: agentId, version }),
        { $set: { ...change, updatedAt: new Date() }, $inc: { version: 1 } },
        { returnDocument: "after" },
      ),
    async remove(tenantId, agentId) {
      const { deletedCount } = await agents.deleteOne(ofTenant(tenantId, { _id: agentId }));
      return deletedCount > 0;
    },
  };
}
