import { Binary, type Db } from "mongodb";
import { defineCollection, ofTenant, type TenantDocument } from "./collection.ts";

/** A customer's key for a provider, encrypted under the tenant's data key. */
export type ProviderKeyDocument = TenantDocument & {
  provider: string;
  /** Nonce, tag and ciphertext. */
  sealed: Binary;
  /** As `sk-a…wxyz`. */
  preview: string;
  createdAt: Date;
  updatedAt: Date;
};

/** A tenant's data key, encrypted under a master key. */
export type DataKeyDocument = TenantDocument & {
  masterKeyId: string;
  wrapped: Binary;
  createdAt: Date;
};

export const providerKeyCollection = defineCollection<ProviderKeyDocument>({
  name: "providerKeys",
  indexes: [{ name: "tenant", key: { tenantId: 1, provider: 1 }, unique: true }],
});

export const dataKeyCollection = defineCollection<DataKeyDocument>({
  name: "dataKeys",
  indexes: [{ name: "master", key: { masterKeyId: 1, _id: 1 } }],
});

export type SealedKey = { sealed: Buffer; preview: string; at: Date };

export type ProviderKeyStore = {
  find(tenantId: string, provider: string): Promise<ProviderKeyDocument | null>;
  list(tenantId: string): Promise<ProviderKeyDocument[]>;
  /** Sets a tenant's key, in the place of the one that is there. */
  put(tenantId: string, provider: string, key: SealedKey): Promise<void>;
  /** Replaces the key that is there; false when there is none. */
  replace(tenantId: string, provider: string, key: SealedKey): Promise<boolean>;
  remove(tenantId: string, provider: string): Promise<boolean>;
  findDataKey(tenantId: string): Promise<DataKeyDocument | null>;
  /** Keeps a tenant's data key unless it has one; answers the one that is kept. */
  ensureDataKey(tenantId: string, made: { masterKeyId: string; wrapped: Buffer }): Promise<DataKeyDocument>;
  /** Data keys, whose-ever, that another master key wrapped, in the order of their ids, after `afterId`. */
  listDataKeysNotBy(masterKeyId: string, page: { afterId?: string; limit: number }): Promise<DataKeyDocument[]>;
  /** Puts newly wrapped bytes in the place of exactly these; false when they have changed meanwhile. */
  rewrapDataKey(there: DataKeyDocument, made: { masterKeyId: string; wrapped: Buffer }): Promise<boolean>;
};

const idOf = (tenantId: string, provider: string) => `${tenantId}:${provider}`;

export function makeProviderKeyStore(db: Db): ProviderKeyStore {
  const keys = db.collection<ProviderKeyDocument>(providerKeyCollection.name);
  const dataKeys = db.collection<DataKeyDocument>(dataKeyCollection.name);
  const toFields = ({ sealed, preview, at }: SealedKey) => ({ sealed: new Binary(sealed), preview, updatedAt: at });
  return {
    find: (tenantId, provider) => keys.findOne(ofTenant(tenantId, { _id: idOf(tenantId, provider) })),
    list: (tenantId) => keys.find(ofTenant(tenantId)).sort({ provider: 1 }).limit(100).toArray(),
    async put(tenantId, provider, key) {
      await keys.updateOne(
        ofTenant(tenantId, { _id: idOf(tenantId, provider) }),
        { $set: toFields(key), $setOnInsert: { provider, createdAt: key.at } },
        { upsert: true },
      );
    },
    async replace(tenantId, provider, key) {
      const { matchedCount } = await keys.updateOne(ofTenant(tenantId, { _id: idOf(tenantId, provider) }), {
        $set: toFields(key),
      });
      return matchedCount === 1;
    },
    async remove(tenantId, provider) {
      const { deletedCount } = await keys.deleteOne(ofTenant(tenantId, { _id: idOf(tenantId, provider) }));
      return deletedCount === 1;
    },
    findDataKey: (tenantId) => dataKeys.findOne(ofTenant(tenantId, { _id: tenantId })),
    async ensureDataKey(tenantId, { masterKeyId, wrapped }) {
      const kept = await dataKeys.findOneAndUpdate(
        ofTenant(tenantId, { _id: tenantId }),
        { $setOnInsert: { masterKeyId, wrapped: new Binary(wrapped), createdAt: new Date() } },
        { upsert: true, returnDocument: "after" },
      );
      if (kept === null) throw new TypeError("an upsert answered no document");
      return kept;
    },
    listDataKeysNotBy: (masterKeyId, { afterId, limit }) =>
      dataKeys
        .find({ masterKeyId: { $ne: masterKeyId }, ...(afterId === undefined ? {} : { _id: { $gt: afterId } }) })
        .sort({ _id: 1 })
        .limit(limit)
        .toArray(),
    async rewrapDataKey(there, { masterKeyId, wrapped }) {
      const { matchedCount } = await dataKeys.updateOne(
        { _id: there._id, masterKeyId: there.masterKeyId, wrapped: there.wrapped },
        { $set: { masterKeyId, wrapped: new Binary(wrapped) } },
      );
      return matchedCount === 1;
    },
  };
}

/** The bytes of a stored binary value. */
export function bytesOf(binary: Binary): Buffer {
  return Buffer.from(binary.buffer.subarray(0, binary.position));
}
