import type { Db } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { makeRecords } from "./records.ts";
import { makeUseStore } from "./use-store.ts";
import { insertIfAbsent } from "./writes.ts";

/** What a call was answered, kept to answer its repeats. `body` is the JSON text, so that a repeat gets the same bytes. */
export type StoredReply = {
  status: number;
  headers: Record<string, string>;
  body: string | null;
  /** What its handler named as ignored. */
  ignored: readonly string[];
};

/** A call that was made with an idempotency key. `_id` is the tenant's id, and a hash of role, subject and key. */
export type IdempotencyRecord = TenantOwned & {
  /** Hash of method, path and body: another call must not use the same key. */
  fingerprint: string;
  /** New for each process that runs the call; fences one that lost its lease. */
  token: string;
  /** While the call runs: until when its process holds it. Renewed; a dead process's record can be taken over after it. */
  leaseUntil: Date;
  isDone: boolean;
  /** Reserved for the call's job, if it makes one: a try that takes over from a dead process finds that job by it. */
  jobId: string;
  /** The final answer when done; before, what to answer should the process die (accepted work continues). */
  reply?: StoredReply;
  /** Bytes of the answer's text if that is kept in a record of its own, so that nobody reads it to look at the call. */
  largeBytes?: number;
  expiresAt: Date;
};

/** A large text of an answer. Its id is that of the call, and the token of the process that ran it. */
type LargeText = TenantOwned & Pick<IdempotencyRecord, "expiresAt"> & { text: string };
/** A longer text has a record of its own, in bytes. */
const LARGE_BYTES = 256 << 10;
const textIdOf = ({ _id, token }: Pick<Claim, "_id" | "token">) => `${_id}:${token}`;

export const idempotencyCollection = defineCollection<IdempotencyRecord>({
  name: "idempotency",
  indexes: [{ name: "expiry", key: { expiresAt: 1 }, expireAfterSeconds: 0 }],
});

export type Claim = Pick<IdempotencyRecord, "_id" | "tenantId" | "token" | "expiresAt">;

/** What the store needs for a record beside the text of its response, in bytes. */
export const BYTES_BESIDE_TEXT = 512;

export type IdempotencyStore = ReturnType<typeof makeIdempotencyStore>;

export function makeIdempotencyStore(db: Db) {
  const records = db.collection<IdempotencyRecord>(idempotencyCollection.name);
  const texts = db.collection<LargeText>(idempotencyCollection.name);
  const use = makeUseStore(db);
  /** What the record says of an answer. The text is there before that: nobody finds the answer without it. */
  const toKept = async (claim: Claim, reply: StoredReply, bytes: number) => {
    if (reply.body === null || bytes <= LARGE_BYTES) return { reply };
    const { tenantId, expiresAt } = claim;
    const record = { tenantId, expiresAt, text: reply.body };
    await texts.updateOne({ _id: textIdOf(claim) }, { $set: record }, { upsert: true });
    return { reply: { ...reply, body: null }, largeBytes: bytes };
  };
  const running = ({ _id, token }: Claim) => ({ _id, token, isDone: false });
  return {
    /** Adds the record of a call that begins; false when its id is taken. */
    insert: (record: IdempotencyRecord) => insertIfAbsent(records, record),
    find: makeRecords(records).get,
    /** The text of an answer of which `largeBytes` tells; undefined if it is not there any more. */
    text: async (claim: Claim): Promise<string | undefined> =>
      (await texts.findOne(ofTenant(claim.tenantId, { _id: textIdOf(claim) })))?.text,
    /** Puts `record` in the place of the one that `token` held; false when another process was first. */
    async takeOver(record: IdempotencyRecord, token: string): Promise<boolean> {
      const { modifiedCount } = await records.replaceOne({ _id: record._id, token }, record);
      return modifiedCount === 1;
    },
    /** Prolongs the lease of a call that runs. */
    async renew(claim: Claim, leaseUntil: Date): Promise<void> {
      await records.updateOne(running(claim), { $set: { leaseUntil } });
    },
    /**
     * Keeps an answer: the final one, or the one for the case that the process dies; undefined for one that must not be
     * kept. Nothing happens without the claim.
     */
    async keep(claim: Claim, reply: StoredReply | undefined, isDone: boolean): Promise<void> {
      const { tenantId, expiresAt } = claim;
      const bytes = Buffer.byteLength(reply?.body ?? "");
      const counted = isDone
        ? use.add({ tenantId, kind: "responses", bytes: BYTES_BESIDE_TEXT + bytes, expiresAt })
        : undefined;
      const kept = reply ? await toKept(claim, reply, bytes) : {};
      await Promise.all([records.updateOne(running(claim), { $set: { isDone, ...kept } }), counted]);
    },
    /** Ends the lease of a call of which nobody knows what came of it: a repeat takes it over, with the id of its job. */
    async letGo(claim: Claim): Promise<void> {
      await records.updateOne(running(claim), { $set: { leaseUntil: new Date() } });
    },
    /** Forgets the call, so that a repeat runs again. */
    async release(claim: Claim): Promise<void> {
      await records.deleteOne(running(claim));
    },
  };
}
