import type { Db } from "mongodb";
import { defineCollection, ofTenant } from "./collection.ts";
import { findPage, type Page, type PageQuery } from "./page.ts";

/** A workflow at its latest version. A run keeps the definition that it began with. */
export type WorkflowRecord = {
  _id: string;
  tenantId: string;
  name: string;
  /** The definition as JSON: keys of a webhook's body may be ones that the store has a meaning for. */
  definition: string;
  /** The definition's own, for lists. */
  description?: string;
  /** Steps of the definition, nested ones included. */
  stepCount: number;
  /** 1 at creation, one more at each replacement. */
  version: number;
  /** Who made it: they, and admins, may change it. */
  createdBy: string;
  createdAt: Date;
  updatedAt: Date;
};

/** What a list shows of a workflow. */
export type WorkflowSummaryRecord = Omit<WorkflowRecord, "tenantId" | "definition">;

const summaryFields = {
  name: 1,
  description: 1,
  stepCount: 1,
  version: 1,
  createdBy: 1,
  createdAt: 1,
  updatedAt: 1,
} as const;

/** What a replacement changes. */
export type WorkflowChange = Pick<WorkflowRecord, "name" | "definition" | "description" | "stepCount">;

export const workflowCollection = defineCollection<WorkflowRecord>({
  name: "workflows",
  indexes: [{ key: { tenantId: 1, _id: -1 }, name: "tenant_newest" }],
});

export type WorkflowStore = {
  insert(workflow: WorkflowRecord): Promise<void>;
  get(tenantId: string, workflowId: string): Promise<WorkflowRecord | null>;
  list(tenantId: string, page: PageQuery): Promise<Page<WorkflowSummaryRecord>>;
  /** How many workflows a tenant has; counts no further than `limit`. */
  count(tenantId: string, limit: number): Promise<number>;
  /** Puts the next version in the place of `version`; null when the workflow is not there at that version any more. */
  replace(
    tenantId: string,
    workflowId: string,
    next: { version: number; change: WorkflowChange },
  ): Promise<WorkflowRecord | null>;
  /** False when it was not there. */
  remove(tenantId: string, workflowId: string): Promise<boolean>;
};

export function makeWorkflowStore(db: Db): WorkflowStore {
  const workflows = db.collection<WorkflowRecord>(workflowCollection.name);
  return {
    insert: async (workflow) => void (await workflows.insertOne(workflow)),
    get: (tenantId, workflowId) => workflows.findOne(ofTenant(tenantId, { _id: workflowId })),
    list: (tenantId, page) => findPage(workflows, { tenantId, page, fields: summaryFields }),
    count: (tenantId, limit) => workflows.countDocuments(ofTenant(tenantId), { limit }),
    replace: (tenantId, workflowId, { version, change }) =>
      workflows.findOneAndUpdate(
        ofTenant(tenantId, { _id: workflowId, version }),
        {
          $set: { ...change, updatedAt: new Date() },
          $inc: { version: 1 },
          ...(change.description === undefined ? { $unset: { description: "" as const } } : {}),
        },
        { returnDocument: "after" },
      ),
    async remove(tenantId, workflowId) {
      const { deletedCount } = await workflows.deleteOne(ofTenant(tenantId, { _id: workflowId }));
      return deletedCount > 0;
    },
  };
}
