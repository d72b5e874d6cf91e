import type { Db } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { insertIfAbsent } from "./writes.ts";

/**
 * Some events of a response that is made in the background. They are numbered without a gap, and each record is named after its
 * first number: so of two processes that write at once, one is refused, and nothing follows the end.
 */
export type ResponseEventRecord = TenantOwned & {
  responseId: string;
  /** The number of the first event, and the one after the last. */
  from: number;
  to: number;
  /** The events as JSON. */
  events: string;
  /** Bytes of the events of the response up to here. */
  bytes: number;
  /** Set in the record that ends the response: its items as they are kept, as JSON. */
  kept?: string;
  expireAt: Date;
};

export const responseEventCollection = defineCollection<ResponseEventRecord>({
  name: "responseEvents",
  indexes: [
    { key: { tenantId: 1, responseId: 1, from: 1 }, name: "response" },
    { key: { expireAt: 1 }, name: "expire", expireAfterSeconds: 0 },
  ],
});

/** Records that one read brings: the largest has megabytes, and waits in memory while its reader is slow. */
const BATCH = 1;

export type ResponseEventStore = ReturnType<typeof makeResponseEventStore>;

export function makeResponseEventStore(db: Db) {
  const records = db.collection<ResponseEventRecord>(responseEventCollection.name);
  return {
    /** Adds events after all others; false when there are others in their place. */
    append: (events: Omit<ResponseEventRecord, "_id">): Promise<boolean> =>
      insertIfAbsent(records, { _id: `${events.responseId}:${events.from}`, ...events }),
    /** The last events; null when there are none. */
    last: (tenantId: string, responseId: string): Promise<ResponseEventRecord | null> =>
      records.findOne(ofTenant(tenantId, { responseId }), { sort: { from: -1 } }),
    /** Those from a number on, in their order; the first record may begin before it. */
    read: (tenantId: string, responseId: string, from: number): AsyncIterable<ResponseEventRecord> =>
      records
        .find(ofTenant(tenantId, { responseId, to: { $gt: from } }))
        .sort({ from: 1 })
        .batchSize(BATCH),
    /** Erases all of a response that has ended. What is left of its end lets nothing follow it. */
    async erase(tenantId: string, responseId: string): Promise<void> {
      await records.updateMany(ofTenant(tenantId, { responseId, kept: { $exists: true } }), {
        $set: { events: "[]", kept: "" },
      });
      await records.deleteMany(ofTenant(tenantId, { responseId, kept: { $exists: false } }));
    },
  };
}
