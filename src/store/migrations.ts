import type { Db } from "mongodb";
import type { ChunkRecord } from "./chunk.ts";
import { chunkCollection } from "./chunk-store.ts";
import { type DocumentRecord, documentCollection } from "./document-record.ts";
import { fileBatchCollection } from "./file-store.ts";
import { type OrganizationRecord, organizationCollection } from "./organization-store.ts";
import { type TenantRecord, tenantCollection } from "./tenant-store.ts";
import { toSpaceKey } from "./vector-space.ts";
import { workflowCollection } from "./workflow-store.ts";

/**
 * One change of the stored data, from a version to the next. It may be cut half-way and run again, and an earlier process
 * that was only paused may still be at it: so each of its writes must do no harm when it is repeated.
 */
export type Migration = { what: string; run(db: Db): Promise<void> };

/** All changes, in order: the first one leads from version 1 to 2. Append to this list; never change what stands in it. */
export const migrations: readonly Migration[] = [
  {
    what: "let lists show workflows without their definitions",
    async run(db) {
      const workflows = db.collection<{ _id: string; definition: string }>(workflowCollection.name);
      for await (const { _id, definition } of workflows.find({ stepCount: { $exists: false } })) {
        const { description, steps } = JSON.parse(definition) as { description?: string; steps: Step[] }; // checked when it was stored
        await workflows.updateOne(
          { _id, definition },
          { $set: { stepCount: countSteps(steps), ...(description === undefined ? {} : { description }) } },
        );
      }
    },
  },
  {
    what: "let the sweep find clients' batches of requests by when they last changed",
    async run(db) {
      const batches = db.collection(fileBatchCollection.name);
      await batches.updateMany({ updatedAt: { $exists: false } }, { $set: { updatedAt: new Date(0) } });
    },
  },
  {
    what: "let tenants that others made share the limits of their root",
    async run(db) {
      const organizations = db.collection<OrganizationRecord>(organizationCollection.name);
      const tenants = db.collection<TenantRecord>(tenantCollection.name);
      const makers = new Map<string, string>();
      for await (const { founderTenantId, tenants: held } of organizations.find({
        "tenants.madeAs": { $exists: true },
      })) {
        // Only the founder administers it, so only the founder can have created its tenants.
        for (const { tenantId, madeAs } of held) if (madeAs !== undefined) makers.set(tenantId, founderTenantId);
      }
      for (const [tenantId, maker] of makers) {
        let rootTenantId = maker;
        for (let next = makers.get(maker); next !== undefined; next = makers.get(next)) rootTenantId = next;
        await tenants.updateOne({ _id: tenantId }, { $set: { rootTenantId } });
      }
    },
  },
  {
    what: "note by which model each document was embedded",
    async run(db) {
      const documents = db.collection<DocumentRecord>(documentCollection.name);
      const chunks = db.collection<ChunkRecord>(chunkCollection.name);
      const unnoted = documents.find({ vectorSpace: { $exists: false }, version: { $gt: 0 } });
      for await (const { _id, tenantId, version } of unnoted.project<DocumentRecord>({ tenantId: 1, version: 1 })) {
        const chunk = await chunks.findOne({ tenantId, documentId: _id, version });
        if (chunk === null) continue;
        const vectorSpace = toSpaceKey({ model: chunk.model, dimensions: chunk.embedding.toFloat32Array().length });
        await documents.updateOne({ _id, version }, { $set: { vectorSpace } });
      }
    },
  },
  {
    // The store of a data folder divides large documents from this version on: an earlier release would see a part of them.
    what: "keep earlier releases from reading large documents without their large fields",
    run: async () => undefined,
  },
];

/**
 * The oldest release that may run at the same time as this one, and after it, by the version of the data that it knows: what
 * this release and its changes write, that one reads, and the other way round. It is 1 + the number of changes that were here
 * when the last change came that takes away what an earlier release reads. docs/upgrading.md has the rules.
 */
export const oldestBeside = 6;

type Step = { then?: Step[]; else?: Step[] };

function countSteps(steps: readonly Step[]): number {
  return steps.reduce((sum, { then = [], else: otherwise = [] }) => sum + 1 + countSteps([...then, ...otherwise]), 0);
}
