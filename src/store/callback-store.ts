import type { Db } from "mongodb";
import { defineCollection, ofTenant } from "./collection.ts";

/** An address that is to be told of a job's end. Its id is the job's. */
export type CallbackRecord = {
  _id: string;
  tenantId: string;
  url: string;
  /** Messages that were sent, or tried to be. */
  tries: number;
  createdAt: Date;
  /** When it is looked at next; while a message is under way, when that counts as lost. */
  nextAt: Date;
};

export const callbackCollection = defineCollection<CallbackRecord>({
  name: "callbacks",
  indexes: [{ key: { nextAt: 1 }, name: "due" }],
});

export type CallbackStore = {
  /** Keeps one, unless the job has one already. */
  ensure(callback: CallbackRecord): Promise<void>;
  /** Those to be looked at, whosever, the most overdue first. */
  due(now: Date, limit: number): Promise<CallbackRecord[]>;
  /** Puts off exactly this state of one until `nextAt`; false when others have it by now. */
  putOff(there: CallbackRecord, next: { nextAt: Date; tries: number }): Promise<boolean>;
  remove(tenantId: string, jobId: string): Promise<void>;
};

export function makeCallbackStore(db: Db): CallbackStore {
  const callbacks = db.collection<CallbackRecord>(callbackCollection.name);
  return {
    async ensure({ _id, tenantId, ...callback }) {
      await callbacks.updateOne(ofTenant(tenantId, { _id }), { $setOnInsert: callback }, { upsert: true });
    },
    due: (now, limit) =>
      callbacks
        .find({ nextAt: { $lte: now } })
        .sort({ nextAt: 1 })
        .limit(limit)
        .toArray(),
    async putOff({ tenantId, _id, nextAt: from }, { nextAt, tries }) {
      const there = ofTenant(tenantId, { _id, nextAt: from });
      return (await callbacks.updateOne(there, { $set: { nextAt, tries } })).modifiedCount > 0;
    },
    remove: async (tenantId, jobId) => void (await callbacks.deleteOne(ofTenant(tenantId, { _id: jobId }))),
  };
}
