import type { Db } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import type { StoredCaller } from "./key-store.ts";
import { findFirst } from "./page.ts";
import { makeRecords } from "./records.ts";
import { changeOne, updateIf } from "./writes.ts";

/** A batch of files that are added to a vector store; its documents name it. */
export type VectorStoreBatch = TenantOwned & {
  /** The name of the collection. */
  collection: string;
  caller: StoredCaller;
  items: { fileId: string; attributes?: Record<string, string | number | boolean> }[];
  /** Number of its files that have a document and a job. */
  added: number;
  /** True until all files have them, or until the batch is cancelled. */
  isOpen?: true;
  isCancelled?: true;
  createdAt: Date;
  updatedAt: Date;
  expireAt: Date;
};

export const vectorStoreBatchCollection = defineCollection<VectorStoreBatch>({
  name: "vectorStoreBatches",
  indexes: [
    { name: "collection", key: { tenantId: 1, collection: 1 } },
    { name: "open", key: { isOpen: 1, updatedAt: 1 }, partialFilterExpression: { isOpen: true } },
    { name: "expiry", key: { expireAt: 1 }, expireAfterSeconds: 0 },
  ],
});

export function makeVectorStoreBatchStore(db: Db) {
  const batches = db.collection<VectorStoreBatch>(vectorStoreBatchCollection.name);
  const { insert, get, count } = makeRecords(batches);
  const open = ({ tenantId, _id }: TenantOwned) => ofTenant(tenantId, { _id, isOpen: true as const });
  return {
    insert,
    get,
    count,
    /**
     * Takes an open batch that is as it was read: of several sweeps one gets it, and others see it again when nothing has
     * happened to it for a while. Null when it is over, or another one has taken it.
     */
    claim: (batch: VectorStoreBatch) =>
      changeOne(batches, { ...open(batch), updatedAt: batch.updatedAt }, { $set: { updatedAt: new Date() } }),
    /** Records that one more file was added. Returns false if the batch has ended, or if another process added the file. */
    advance: (batch: VectorStoreBatch, added: number) =>
      updateIf(batches, { ...open(batch), added }, { $set: { added: added + 1, updatedAt: new Date() } }),
    close: (batch: VectorStoreBatch) =>
      updateIf(batches, open(batch), { $set: { updatedAt: new Date() }, $unset: { isOpen: "" } }),
    /** Returns null if there is none. */
    cancel: (tenantId: string, _id: string) =>
      changeOne(batches, ofTenant(tenantId, { _id }), {
        $set: { isCancelled: true, updatedAt: new Date() },
        $unset: { isOpen: "" },
      }),
    /** Those of a collection that is deleted. */
    removeOf: async (tenantId: string, collection: string): Promise<void> =>
      void (await batches.deleteMany(ofTenant(tenantId, { collection }))),
    /** Open batches of all tenants without a change since `before`. */
    unfinished: ({ before, limit }: { before: Date; limit: number }) =>
      findFirst(batches, { isOpen: true, updatedAt: { $lt: before } }, { by: "updatedAt", limit }),
  };
}
