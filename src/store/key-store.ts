import type { Collection, Db, Filter, WithId } from "mongodb";
import { defined } from "../lib/defined.ts";
import { defineCollection, type IndexDeclaration, ofTenant, type TenantOwned } from "./collection.ts";
import { findPage, type Page, type PageQuery, type Shown } from "./page.ts";
import { makeRecords } from "./records.ts";
import { changeOne } from "./writes.ts";

/** What a key's subject may do; each role may do what those before it may. */
export const roles = ["member", "admin", "owner"] as const;
export type Role = (typeof roles)[number];

/** A key as it is stored: never the key, only its hash and a preview to recognize it by. */
export type KeyRecord = TenantOwned & {
  /** SHA-256 of the key, in hex. */
  hash: string;
  /** As `sk_abcd…wxyz`, or `pk_abcd…wxyz` of a widget key. */
  preview: string;
  createdAt: Date;
};

export type ApiKeyRecord = KeyRecord & {
  role: Role;
  /** Who acts by this key. */
  subject: string;
  name?: string;
  /** The collections of documents that it is limited to. */
  collections?: string[];
  expiresAt?: Date;
  revokedAt?: Date;
  /** To the minute; absent where it was never used, or by an earlier release alone. */
  lastUsedAt?: Date;
};

const shown = ["preview", "role", "subject", "name", "collections", "createdAt", "expiresAt", "lastUsedAt"] as const;

/** What owners see of a key: not its hash. */
export type ShownApiKey = Shown<ApiKeyRecord, typeof shown>;

/** Who started a run, as its record keeps them: what it does is counted to their key, and may do what that may. */
export type StoredCaller = { keyId: string; subject: string; role: Role; collections?: readonly string[] };

export const keyIndexes: readonly IndexDeclaration[] = [
  { name: "hash", key: { hash: 1 }, unique: true },
  { name: "tenant", key: { tenantId: 1, _id: -1 } },
];

/** By hash, over all tenants: this is how callers' tenants are found. */
export function makeHashLookup<T extends KeyRecord>(keys: Collection<T>) {
  return (hashes: readonly string[]): Promise<WithId<T>[]> => {
    const filter = { hash: { $in: [...hashes] } } as Filter<T>; // the driver's types cannot follow a generic record
    return keys
      .find(filter)
      .batchSize(hashes.length + 1)
      .toArray();
  };
}

export const apiKeyCollection = defineCollection<ApiKeyRecord>({ name: "apiKeys", indexes: keyIndexes });

export function makeApiKeyStore(db: Db) {
  const keys = db.collection<ApiKeyRecord>(apiKeyCollection.name);
  const notRevoked = { revokedAt: { $exists: false } };
  const { insert, get } = makeRecords(keys);
  return {
    insert,
    /** A key, usable or not. */
    get,
    findByHashes: makeHashLookup(keys),
    /** The keys that are not revoked. */
    list: (tenantId: string, page: PageQuery): Promise<Page<ShownApiKey>> =>
      findPage(keys, { tenantId, page, filter: notRevoked, fields: shown }),
    /** Notes when these keys were used last, whosever they are: callers were found by them. */
    async noteUse(keyIds: readonly string[], at: Date): Promise<void> {
      await keys.updateMany({ _id: { $in: [...keyIds] } }, { $set: { lastUsedAt: at } });
    },
    /** How many there are of these; counts no further than `limit`. */
    count: (tenantId: string, limit: number) => keys.countDocuments(ofTenant(tenantId, notRevoked), { limit }),
    /** Marks a key as revoked; null when there is none, or it was already. */
    revoke: (tenantId: string, keyId: string, at: Date) =>
      changeOne(keys, ofTenant(tenantId, { _id: keyId, ...notRevoked }), { $set: { revokedAt: at } }),
    /** How many keys, of a role if it is given, can still be used after `at`, not counting `exceptId`. */
    countUsable: (tenantId: string, { role, exceptId, at }: { role?: Role; exceptId?: string; at: Date }) =>
      keys.countDocuments({
        ...ofTenant(tenantId, { ...defined({ role, _id: exceptId && { $ne: exceptId } }), ...notRevoked }),
        $or: [{ expiresAt: { $exists: false } }, { expiresAt: { $gt: at } }],
      }),
  };
}
