import type { Db } from "mongodb";
import { defineCollection, type TenantDocument } from "./collection.ts";
import { insertIfAbsent } from "./writes.ts";

/** What a call was answered, kept to answer its repeats. `body` is the JSON text, so that a repeat gets the same bytes. */
export type StoredReply = { status: number; headers: Record<string, string>; body: string | null };

/** A call that was made with an idempotency key. `_id` is the tenant's id and the key's hash. */
export type IdempotencyDocument = TenantDocument & {
  /** Hash of method, path and body: another call must not use the same key. */
  fingerprint: string;
  /** New for each process that runs the call; fences one that lost its lease. */
  token: string;
  /** While the call runs: until when its process holds it. Renewed; a dead process's record can be taken over after it. */
  leaseUntil: Date;
  isDone: boolean;
  /** Reserved for the call's job, if it makes one: a try that takes over from a dead process finds that job by it. */
  jobId: string;
  /** The final answer when done; before, what to answer should the process die (work that was accepted goes on). */
  reply?: StoredReply;
  expiresAt: Date;
};

export const idempotencyCollection = defineCollection<IdempotencyDocument>({
  name: "idempotency",
  indexes: [{ name: "expiry", key: { expiresAt: 1 }, expireAfterSeconds: 0 }],
});

export type Claim = Pick<IdempotencyDocument, "_id" | "token">;

export type IdempotencyStore = {
  /** Adds the record of a call that begins; false when its id is taken. */
  insert(record: IdempotencyDocument): Promise<boolean>;
  find(tenantId: string, id: string): Promise<IdempotencyDocument | null>;
  /** Puts `record` in the place of the one that `token` held; false when somebody else was first. */
  takeOver(record: IdempotencyDocument, token: string): Promise<boolean>;
  /** Prolongs the lease of a call that runs. */
  renew(claim: Claim, leaseUntil: Date): Promise<void>;
  /**
   * Keeps an answer: the final one, or the one for the case that the process dies; undefined for one that must not be kept.
   * Nothing happens without the claim.
   */
  keep(claim: Claim, reply: StoredReply | undefined, isDone: boolean): Promise<void>;
  /** Forgets the call, so that a repeat runs anew. */
  release(claim: Claim): Promise<void>;
};

export function makeIdempotencyStore(db: Db): IdempotencyStore {
  const records = db.collection<IdempotencyDocument>(idempotencyCollection.name);
  return {
    insert: (record) => insertIfAbsent(records, record),
    find: (tenantId, id) => records.findOne({ _id: id, tenantId }),
    async takeOver(record, token) {
      const { modifiedCount } = await records.replaceOne({ _id: record._id, token }, record);
      return modifiedCount === 1;
    },
    async renew({ _id, token }, leaseUntil) {
      await records.updateOne({ _id, token, isDone: false }, { $set: { leaseUntil } });
    },
    async keep({ _id, token }, reply, isDone) {
      await records.updateOne({ _id, token, isDone: false }, { $set: { isDone, ...(reply ? { reply } : {}) } });
    },
    async release({ _id, token }) {
      await records.deleteOne({ _id, token, isDone: false });
    },
  };
}
