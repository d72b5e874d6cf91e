import type { Db } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { makeRecords } from "./records.ts";

/** A browser's session, which stands for an API key until it ends. The token in its cookie is never stored, only its hash. */
type SessionRecord = TenantOwned & {
  /** SHA-256 of the token, in hex. */
  hash: string;
  keyId: string;
  /** The hash of the key that it stands for. */
  keyHash: string;
  createdAt: Date;
  expiresAt: Date;
};

export const sessionCollection = defineCollection<SessionRecord>({
  name: "sessions",
  indexes: [
    { name: "hash", key: { hash: 1 }, unique: true },
    { name: "key", key: { tenantId: 1, keyId: 1, _id: -1 } },
    { name: "expiry", key: { expiresAt: 1 }, expireAfterSeconds: 0 },
  ],
});

/** Sessions that are removed by one command. */
const REMOVED_AT_ONCE = 100;

export function makeSessionStore(db: Db) {
  const sessions = db.collection<SessionRecord>(sessionCollection.name);
  return {
    insert: makeRecords(sessions).insert,
    findByHashes: (hashes: readonly string[]): Promise<SessionRecord[]> =>
      sessions.find({ hash: { $in: [...hashes] } }).toArray(),
    /** Removes all of a key's sessions but the `kept` newest; returns the hashes of those that it removed. */
    async removeOld(tenantId: string, keyId: string, kept: number): Promise<string[]> {
      const newest = sessions.find(ofTenant(tenantId, { keyId })).sort({ _id: -1 });
      const found = await newest.limit(kept + REMOVED_AT_ONCE).toArray();
      const old = found.slice(kept);
      if (old.length > 0) await sessions.deleteMany(ofTenant(tenantId, { _id: { $in: old.map(({ _id }) => _id) } }));
      return old.map(({ hash }) => hash);
    },
    async removeByHash(hash: string): Promise<void> {
      await sessions.deleteOne({ hash });
    },
  };
}

/** A session of the operator's browser. The token in its cookie is never stored, only what it makes with the password. */
type OperatorSessionRecord = { _id: string; hash: string; createdAt: Date; expiresAt: Date };

export const operatorSessionCollection = defineCollection<OperatorSessionRecord>({
  name: "operatorSessions",
  indexes: [
    { name: "hash", key: { hash: 1 }, unique: true },
    { name: "expiry", key: { expiresAt: 1 }, expireAfterSeconds: 0 },
  ],
});

export type OperatorSessionStore = ReturnType<typeof makeOperatorSessionStore>;

export function makeOperatorSessionStore(db: Db) {
  const sessions = db.collection<OperatorSessionRecord>(operatorSessionCollection.name);
  return {
    /** Adds a session, and removes all but the `kept` newest. */
    async insert(session: OperatorSessionRecord, kept: number): Promise<void> {
      await sessions.insertOne(session);
      const newest = await sessions
        .find()
        .sort({ _id: -1 })
        .limit(kept + REMOVED_AT_ONCE)
        .toArray();
      const old = newest.slice(kept).map(({ _id }) => _id);
      if (old.length > 0) await sessions.deleteMany({ _id: { $in: old } });
    },
    /** Whether there is a session that has not ended. */
    has: async (hash: string, now: Date): Promise<boolean> =>
      (await sessions.findOne({ hash, expiresAt: { $gt: now } })) !== null,
    remove: async (hash: string): Promise<void> => void (await sessions.deleteOne({ hash })),
  };
}
