import type { Db } from "mongodb";
import { defineCollection, ofTenant } from "./collection.ts";
import { makeWorkRecords, type StoredWork } from "./records.ts";
import { unlessDuplicate } from "./writes.ts";

/** The move of a tenant's documents to an embedding model. A tenant has one at a time, and keeps the last one. */
export type ReindexRecord = StoredWork & {
  model: string;
  /** The length of the model's vectors, once it is known. */
  dimensions?: number;
  /** The key that asked for it: its calls are counted to it. */
  keyId: string;
  /** Documents that were moved. */
  moved: number;
  /** Documents that could not be moved, once it has come to its end. Absent of one that was cancelled, or has failed. */
  left?: number;
};

export const reindexCollection = defineCollection<ReindexRecord>({
  name: "reindexes",
  indexes: [
    { key: { tenantId: 1 }, name: "one_open", unique: true, partialFilterExpression: { isOpen: true } },
    { key: { tenantId: 1, isOpen: 1 }, name: "tenant" },
    { key: { isOpen: 1, updatedAt: 1 }, name: "open", partialFilterExpression: { isOpen: true } },
  ],
});

export function makeReindexStore(db: Db) {
  const reindexes = db.collection<ReindexRecord>(reindexCollection.name);
  const { update, ...records } = makeWorkRecords(reindexes, {
    watched: { isOpen: true },
    fields: ["tenantId", "jobId"],
  });
  return {
    ...records,
    /** False when the tenant has one that is open. Those that have ended are removed. */
    async insertOnly(record: ReindexRecord): Promise<boolean> {
      if ((await unlessDuplicate(reindexes.insertOne(record))) === null) return false;
      await reindexes.deleteMany(ofTenant(record.tenantId, { isOpen: { $exists: false as const } }));
      return true;
    },
    /** The one that is open; null when none is. */
    findOpen: (tenantId: string): Promise<ReindexRecord | null> =>
      reindexes.findOne(ofTenant(tenantId, { isOpen: true as const })),
    setDimensions: (tenantId: string, id: string, dimensions: number) => update(tenantId, id, { $set: { dimensions } }),
    /** Counts a document that was moved. */
    addMoved: (tenantId: string, id: string) => update(tenantId, id, { $inc: { moved: 1 } }),
    /** Ends one that is open; `left` when it has come to its end. */
    finish: (tenantId: string, id: string, end: Pick<ReindexRecord, "left"> = {}) =>
      update(tenantId, id, { $set: end, $unset: { isOpen: "" } }),
  };
}
