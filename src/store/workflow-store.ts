import type { Db } from "mongodb";
import { defineCollection, ofTenant } from "./collection.ts";

/** A workflow at its latest version. A run keeps the definition that it began with. */
export type WorkflowRecord = {
  _id: string;
  tenantId: string;
  name: string;
  /** The definition as JSON: keys of a webhook's body may be ones that the store has a meaning for. */
  definition: string;
  /** 1 at creation, one more at each replacement. */
  version: number;
  /** Who made it: they, and admins, may change it. */
  createdBy: string;
  createdAt: Date;
  updatedAt: Date;
};

export const workflowCollection = defineCollection<WorkflowRecord>({
  name: "workflows",
  indexes: [{ key: { tenantId: 1, _id: -1 }, name: "tenant_newest" }],
});

export type WorkflowStore = {
  insert(workflow: WorkflowRecord): Promise<void>;
  get(tenantId: string, workflowId: string): Promise<WorkflowRecord | null>;
  /** The newest first. `before` is the id that the last page ended with. */
  list(tenantId: string, page: { limit: number; before?: string }): Promise<WorkflowRecord[]>;
  /** Puts the next version in the place of `version`; null when the workflow is not there at that version any more. */
  replace(
    tenantId: string,
    workflowId: string,
    next: { version: number; name: string; definition: string },
  ): Promise<WorkflowRecord | null>;
  /** False when it was not there. */
  remove(tenantId: string, workflowId: string): Promise<boolean>;
};

export function makeWorkflowStore(db: Db): WorkflowStore {
  const workflows = db.collection<WorkflowRecord>(workflowCollection.name);
  return {
    insert: async (workflow) => void (await workflows.insertOne(workflow)),
    get: (tenantId, workflowId) => workflows.findOne(ofTenant(tenantId, { _id: workflowId })),
    list: (tenantId, { limit, before }) =>
      workflows
        .find(ofTenant(tenantId, before === undefined ? {} : { _id: { $lt: before } }))
        .sort({ _id: -1 })
        .limit(limit)
        .toArray(),
    replace: (tenantId, workflowId, { version, name, definition }) =>
      workflows.findOneAndUpdate(
        ofTenant(tenantId, { _id: workflowId, version }),
        { $set: { name, definition, updatedAt: new Date() }, $inc: { version: 1 } },
        { returnDocument: "after" },
      ),
    async remove(tenantId, workflowId) {
      const { deletedCount } = await workflows.deleteOne(ofTenant(tenantId, { _id: workflowId }));
      return deletedCount > 0;
    },
  };
}
