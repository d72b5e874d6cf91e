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
  /** How many of them have a document and a job. */
  added: number;
  /** True until all have, or the batch is cancelled. */
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
    /** Notes that one more file has been added; false when the batch is over, or another one has added it. */
    advance: (batch: VectorStoreBatch, added: number) =>
      updateIf(batches, { ...open(batch), added }, { $set: { added: added + 1, updatedAt: new Date() } }),
    close: (batch: VectorStoreBatch) =>
      updateIf(batches, open(batch), { $set: { updatedAt: new Date() }, $unset: { isOpen: "" } }),
    /** Null when there is none. */
    cancel: (tenantId: string, _id: string) =>
      changeOne(batches, ofTenant(tenantId, { _id }), {
        $set: { isCancelled: true, updatedAt: new Date() },
        $unset: { isOpen: "" },
      }),
    /** Those of a collection that is deleted. */
    removeOf: async (tenantId: string, collection: string): Promise<void> =>
      void (await batches.deleteMany(ofTenant(tenantId, { collection }))),
    /** Of all tenants, open ones that nothing happened to since `before`. */
    unfinished: ({ before, limit }: { before: Date; limit: number }) =>
      findFirst(batches, { isOpen: true, updatedAt: { $lt: before } }, { by: "updatedAt", limit }),
  };
}
