import { Binary, type Db } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { findFirst } from "./page.ts";
import { makeRecords } from "./records.ts";
import { updateIf } from "./writes.ts";

/** A customer's key for a provider, encrypted under the tenant's data key. */
export type ProviderKeyRecord = TenantOwned & {
  provider: string;
  /** Nonce, tag and ciphertext. */
  sealed: Binary;
  /** As `sk-a…wxyz`. */
  preview: string;
  createdAt: Date;
  updatedAt: Date;
};

/** A tenant's data key, encrypted under a master key. */
export type DataKeyRecord = TenantOwned & {
  masterKeyId: string;
  wrapped: Binary;
  createdAt: Date;
};

export const providerKeyCollection = defineCollection<ProviderKeyRecord>({
  name: "providerKeys",
  indexes: [{ name: "tenant", key: { tenantId: 1, provider: 1 }, unique: true }],
});

export const dataKeyCollection = defineCollection<DataKeyRecord>({
  name: "dataKeys",
  indexes: [{ name: "master", key: { masterKeyId: 1, _id: 1 } }],
});

export type SealedKey = { sealed: Buffer; preview: string; at: Date };
type WrappedKey = { masterKeyId: string; wrapped: Buffer };

export type ProviderKeyStore = ReturnType<typeof makeProviderKeyStore>;

const ofProvider = (tenantId: string, provider: string) => ofTenant(tenantId, { _id: `${tenantId}:${provider}` });
const toFields = ({ sealed, preview, at }: SealedKey) => ({ sealed: new Binary(sealed), preview, updatedAt: at });

export function makeProviderKeyStore(db: Db) {
  const keys = db.collection<ProviderKeyRecord>(providerKeyCollection.name);
  const dataKeys = db.collection<DataKeyRecord>(dataKeyCollection.name);
  const { get, ensure } = makeRecords(dataKeys);
  return {
    find: (tenantId: string, provider: string): Promise<ProviderKeyRecord | null> =>
      keys.findOne(ofProvider(tenantId, provider)),
    list: (tenantId: string) => findFirst(keys, ofTenant(tenantId), { by: "provider", limit: 100 }),
    /** Sets a tenant's key, in the place of the one that is there. */
    async put(tenantId: string, provider: string, key: SealedKey): Promise<void> {
      const update = { $set: toFields(key), $setOnInsert: { provider, createdAt: key.at } };
      await keys.updateOne(ofProvider(tenantId, provider), update, { upsert: true });
    },
    /** Replaces the key that is there; false when there is none. */
    replace: (tenantId: string, provider: string, key: SealedKey) =>
      updateIf(keys, ofProvider(tenantId, provider), { $set: toFields(key) }),
    async remove(tenantId: string, provider: string): Promise<boolean> {
      return (await keys.deleteOne(ofProvider(tenantId, provider))).deletedCount === 1;
    },
    findDataKey: (tenantId: string) => get(tenantId, tenantId),
    /** Keeps a tenant's data key unless it has one; returns the one that is kept. */
    ensureDataKey: (tenantId: string, { masterKeyId, wrapped }: WrappedKey) =>
      ensure({ _id: tenantId, tenantId, masterKeyId, wrapped: new Binary(wrapped), createdAt: new Date() }),
    /** Data keys of all tenants that another master key wrapped, in the order of their ids, after `afterId`. */
    listDataKeysNotBy: (masterKeyId: string, { afterId, limit }: { afterId: string | undefined; limit: number }) =>
      findFirst(
        dataKeys,
        { masterKeyId: { $ne: masterKeyId }, ...(afterId === undefined ? {} : { _id: { $gt: afterId } }) },
        { by: "_id", limit },
      ),
    /** Puts newly wrapped bytes in the place of exactly these; false when they have changed meanwhile. */
    rewrapDataKey: (there: DataKeyRecord, { masterKeyId, wrapped }: WrappedKey) =>
      updateIf(
        dataKeys,
        { _id: there._id, masterKeyId: there.masterKeyId, wrapped: there.wrapped },
        { $set: { masterKeyId, wrapped: new Binary(wrapped) } },
      ),
  };
}

/** The bytes of a stored binary value. */
export function bytesOf(binary: Binary): Buffer {
  return Buffer.from(binary.buffer.subarray(0, binary.position));
}
