import type { Db } from "mongodb";
import { type AwaitedRecord, awaitedIndexes, makeAwaited } from "./awaited.ts";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { makeRecords } from "./records.ts";

/** How a wait can have ended: what it waited for came, or its time was over first. */
type WaitEnd = "over" | "expired";

/** What a suspended job waits for, besides the decisions of people: a time, or an event. */
export type WaitRecord = AwaitedRecord & {
  jobId: string;
  status: "pending" | WaitEnd;
  /** The event that it waits for; absent of a wait for a time, which is over when that has come. */
  event?: string;
  /** JSON of the fields that the event's data must have; absent: any event of the name. */
  match?: string;
  /** One of these fields, as a short text by which events find the wait; empty when there is none. */
  matchKey?: string;
  /** The event that has ended it: its id, and its data as JSON. */
  eventId?: string;
  data?: string;
  endedAt?: Date;
  /** When the store forgets it; set at its end. */
  expireAt?: Date;
};

export const waitCollection = defineCollection<WaitRecord>({
  name: "waits",
  indexes: [
    ...awaitedIndexes,
    { key: { tenantId: 1, event: 1, matchKey: 1 }, name: "event", partialFilterExpression: { status: "pending" } },
    { key: { expireAt: 1 }, name: "expire", expireAfterSeconds: 0 },
  ],
});

/** How long a wait is kept after its end, in ms: longer than any worker that has read it. */
const KEEP_ENDED_MS = 7 * 86_400_000;

/** Which waits an event may end: those of its name that began before it. `keys`: see `matchKey`; absent: all. */
type EventQuery = { tenantId: string; event: string; keys?: readonly string[]; at: Date };

export function makeWaitStore(db: Db) {
  const waits = db.collection<WaitRecord>(waitCollection.name);
  const { ensure, get } = makeRecords(waits);
  const { end, ...awaited } = makeAwaited(waits);
  return {
    ...awaited,
    ensure,
    get,
    /** Ends a wait that is pending, once; null when it is not: then nothing has changed. */
    end: (wait: TenantOwned, how: { status: WaitEnd; eventId?: string; data?: string }) => {
      const now = new Date();
      const expireAt = new Date(now.getTime() + KEEP_ENDED_MS);
      return end(wait, { ...how, endedAt: now, expireAt }, { now });
    },
    /** Pending waits for an event, by their ids, after the id `after`. */
    forEvent({ tenantId, event, keys, at }: EventQuery, { after, limit }: { after: string; limit: number }) {
      const filter = {
        status: "pending" as const,
        event,
        createdAt: { $lte: at },
        _id: { $gt: after },
        ...(keys === undefined ? {} : { matchKey: { $in: [...keys] } }),
      };
      return waits.find(ofTenant(tenantId, filter)).sort({ _id: 1 }).limit(limit).toArray();
    },
  };
}
