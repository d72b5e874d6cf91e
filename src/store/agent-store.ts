import type { Db } from "mongodb";
import type { AgentBody } from "../agents/schemas.ts";
import { defineCollection, ofTenant } from "./collection.ts";

/** What an agent is told to be, in one version. */
export type AgentDefinition = AgentBody;

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
  /** The newest first. `before` is the id that the last page ended with. */
  list(tenantId: string, page: { limit: number; before?: string }): Promise<AgentRecord[]>;
  /** Those of a name, which several may have; the newest first. */
  named(tenantId: string, name: string, limit: number): Promise<AgentRecord[]>;
  /** Puts the next version in the place of `version`; null when the agent is not there at that version any more. */
  replace(
    tenantId: string,
    agentId: string,
    next: { version: number; definition: AgentDefinition },
  ): Promise<AgentRecord | null>;
  /** False when it was not there. */
  remove(tenantId: string, agentId: string): Promise<boolean>;
};

export function makeAgentStore(db: Db): AgentStore {
  const agents = db.collection<AgentRecord>(agentCollection.name);
  return {
    insert: async (agent) => void (await agents.insertOne(agent)),
    get: (tenantId, agentId) => agents.findOne(ofTenant(tenantId, { _id: agentId })),
    list: (tenantId, { limit, before }) =>
      agents
        .find(ofTenant(tenantId, before === undefined ? {} : { _id: { $lt: before } }))
        .sort({ _id: -1 })
        .limit(limit)
        .toArray(),
    named: (tenantId, name, limit) =>
      agents
        .find(ofTenant(tenantId, { "definition.name": name }))
        .sort({ _id: -1 })
        .limit(limit)
        .toArray(),
    replace: (tenantId, agentId, { version, definition }) =>
      agents.findOneAndUpdate(
        ofTenant(tenantId, { _id: agentId, version }),
        { $set: { definition, updatedAt: new Date() }, $inc: { version: 1 } },
        { returnDocument: "after" },
      ),
    async remove(tenantId, agentId) {
      const { deletedCount } = await agents.deleteOne(ofTenant(tenantId, { _id: agentId }));
      return deletedCount > 0;
    },
  };
}
