import type { Db } from "mongodb";
import { defineCollection } from "./collection.ts";
import { findPage, type Page, type PageQuery } from "./page.ts";
import { makePublished } from "./published.ts";
import { makeVersionedRecords, type VersionedRecord } from "./records.ts";

/** One version of an agent's definition. */
export type AgentDefinition = {
  name: string;
  description?: string | undefined;
  model: string;
  systemPrompt: string;
  /** The tools. src/agents knows their types, and checks and reads `config`. */
  tools: {
    type: string;
    name?: string | undefined;
    description?: string | undefined;
    config: Record<string, unknown>;
    /** Who has to approve its calls; see the schema of the agents' area. */
    approval?: object | undefined;
  }[];
  /** Whether the key that starts a run may decide on its calls; absent: the owner of a tenant with one key may. */
  allowSelfApproval?: boolean | undefined;
  maxIterations: number;
  temperature?: number | undefined;
  maxTokens?: number | undefined;
  /** Set when it is a tool of `/mcp`. */
  publish?: { name: string; description: string } | undefined;
};

/** An agent at its latest version. A run keeps the definition that it started with. */
export type AgentRecord = VersionedRecord & { definition: AgentDefinition };

/** What a list shows of an agent. */
export type AgentSummaryRecord = Omit<AgentRecord, "tenantId" | "definition"> & {
  definition: Pick<AgentDefinition, "name" | "description" | "model"> & { tools: { type: string }[] };
};

const shownOfDefinition = ["name", "description", "model", "tools.type"].map((field) => `definition.${field}`);
const summaryFields = [...shownOfDefinition, "version", "createdBy", "createdAt", "updatedAt"];

export const agentCollection = defineCollection<AgentRecord>({
  name: "agents",
  indexes: [
    { key: { tenantId: 1, _id: -1 }, name: "tenant_newest" },
    { key: { tenantId: 1, "definition.name": 1, _id: -1 }, name: "tenant_name" },
    { key: { tenantId: 1, "definition.publish.name": 1 }, name: "tenant_tool" },
  ],
});

const toTool = ({ _id, definition }: Pick<AgentRecord, "_id"> & { definition: Pick<AgentDefinition, "publish"> }) =>
  definition.publish === undefined ? [] : [{ _id, ...definition.publish }];

export function makeAgentStore(db: Db) {
  const agents = db.collection<AgentRecord>(agentCollection.name);
  return {
    ...makeVersionedRecords<AgentRecord, Pick<AgentRecord, "definition">>(agents),
    list: (tenantId: string, page: PageQuery): Promise<Page<AgentSummaryRecord>> =>
      findPage(agents, { tenantId, page, fields: summaryFields }),
    ...makePublished(agents, { name: "definition.publish.name", fields: ["definition.publish"] }, toTool),
    /** Ids of the agents with this name, newest first. Several may have the same name. */
    async idsNamed(tenantId: string, name: string, limit: number): Promise<string[]> {
      const filter = { "definition.name": name };
      const { data } = await findPage(agents, { tenantId, page: { limit }, filter, fields: ["_id"] });
      return data.map(({ _id }) => _id);
    },
  };
}
