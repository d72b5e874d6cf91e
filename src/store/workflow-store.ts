import type { Db } from "mongodb";
import { defineCollection } from "./collection.ts";
import { findPage, type Page, type PageQuery } from "./page.ts";
import { makePublished } from "./published.ts";
import { makeVersionedRecords, type VersionedRecord } from "./records.ts";

/** A workflow at its latest version. A run keeps the definition that it began with. */
export type WorkflowRecord = VersionedRecord & {
  name: string;
  /** The definition as JSON: keys of a webhook's body may be ones that the store has a meaning for. */
  definition: string;
  /** The definition's own, for lists. */
  description?: string;
  /** Steps of the definition, nested ones included. */
  stepCount: number;
  /** Set when it is a tool of `/mcp`; `inputSchema` is the definition's, as JSON. */
  tool?: { name: string; description: string; inputSchema?: string };
};

/** What a list shows of a workflow. */
export type WorkflowSummaryRecord = Omit<WorkflowRecord, "tenantId" | "definition" | "tool">;

const summaryFields = ["name", "description", "stepCount", "version", "createdBy", "createdAt", "updatedAt"];

/** What a replacement changes. */
type WorkflowChange = Pick<WorkflowRecord, "name" | "definition" | "description" | "stepCount" | "tool">;

export const workflowCollection = defineCollection<WorkflowRecord>({
  name: "workflows",
  indexes: [
    { key: { tenantId: 1, _id: -1 }, name: "tenant_newest" },
    { key: { tenantId: 1, "tool.name": 1 }, name: "tenant_tool" },
  ],
});

const toTool = ({ _id, tool }: Pick<WorkflowRecord, "_id" | "tool">) => (tool === undefined ? [] : [{ _id, ...tool }]);

export function makeWorkflowStore(db: Db) {
  const workflows = db.collection<WorkflowRecord>(workflowCollection.name);
  return {
    ...makeVersionedRecords<WorkflowRecord, WorkflowChange>(workflows, ["description", "tool"]),
    ...makePublished(workflows, { name: "tool.name", fields: ["tool"] }, toTool),
    list: (tenantId: string, page: PageQuery): Promise<Page<WorkflowSummaryRecord>> =>
      findPage(workflows, { tenantId, page, fields: summaryFields }),
  };
}
