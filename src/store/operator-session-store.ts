import type { Db } from "mongodb";
import { defineCollection } from "./collection.ts";

/** A session of the operator's browser. The token in its cookie is never stored, only what it makes with the password. */
type OperatorSessionRecord = { _id: string; hash: string; createdAt: Date; expiresAt: Date };

export const operatorSessionCollection = defineCollection<OperatorSessionRecord>({
  name: "operatorSessions",
  indexes: [
    { name: "hash", key: { hash: 1 }, unique: true },
    { name: "expiry", key: { expiresAt: 1 }, expireAfterSeconds: 0 },
  ],
});

/** Sessions that are removed by one command. */
const REMOVED_AT_ONCE = 100;

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
