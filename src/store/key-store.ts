import type { Db } from "mongodb";

import { defineCollection, ofTenant, type TenantDocument } from "./collection.ts";
import { findPage, type Page, type PageQuery } from "./page.ts";

/** What a key's subject may do; each role may do what those before it may. */
export const roles = ["member", "admin", "owner"] as const;
export type Role = (typeof roles)[number];

/** An API key as it is stored: never the key, only its hash and a preview to tell it by. */
export type ApiKeyDocument = TenantDocument & {
  /** SHA-256 of the key, in hex. */
  hash: string;
  /** As `sk_abcd…wxyz`. */
  preview: string;
  role: Role;
  /** Who acts by this key. */
  subject: string;
  name?: string;
  createdAt: Date;
  expiresAt?: Date;
  revokedAt?: Date;
};

/** What owners see of a key: not its hash. */
export type ShownApiKey = Pick<
  ApiKeyDocument,
  "_id" | "preview" | "role" | "subject" | "name" | "createdAt" | "expiresAt"
>;

const shownFields = { preview: 1, role: 1, subject: 1, name: 1, createdAt: 1, expiresAt: 1 } as const;

export const apiKeyCollection = defineCollection<ApiKeyDocument>({
  name: "apiKeys",
  indexes: [
    { name: "hash", key: { hash: 1 }, unique: true },
    { name: "tenant", key: { tenantId: 1, _id: -1 } },
  ],
});

export type ApiKeyStore = {
  /** @throws the driver's error 11000 when a key of this hash is there. */
  insert(key: ApiKeyDocument): Promise<void>;
  /** By hash, over all tenants: this is how a caller's tenant is found. */
  findByHash(hash: string): Promise<ApiKeyDocument | null>;
  /** The keys that are not revoked. */
  list(tenantId: string, page: PageQuery): Promise<Page<ShownApiKey>>;
  /** Marks a key as revoked; null when there is none, or it was already. */
  revoke(tenantId: string, keyId: string, at: Date): Promise<ApiKeyDocument | null>;
  /** How many keys of a role can still be used after `at`, not counting `exceptId`. */
  countUsable(tenantId: string, query: { role: Role; exceptId: string; at: Date }): Promise<number>;
};

export function makeApiKeyStore(db: Db): ApiKeyStore {
  const keys = db.collection<ApiKeyDocument>(apiKeyCollection.name);
  return {
    async insert(key) {
      await keys.insertOne(key);
    },
    findByHash: (hash) => keys.findOne({ hash }),
    list: (tenantId, page) =>
      findPage(keys, { tenantId, page, filter: { revokedAt: { $exists: false } }, fields: shownFields }),
    revoke: (tenantId, keyId, at) =>
      keys.findOneAndUpdate(
        ofTenant(tenantId, { _id: keyId, revokedAt: { $exists: false } }),
        { $set: { revokedAt: at } },
        { returnDocument: "after" },
      ),
    countUsable: (tenantId, { role, exceptId, at }) =>
      keys.countDocuments({
        ...ofTenant(tenantId, { role, _id: { $ne: exceptId }, revokedAt: { $exists: false } }),
        $or: [{ expiresAt: { $exists: false } }, { expiresAt: { $gt: at } }],
      }),
  };
}
