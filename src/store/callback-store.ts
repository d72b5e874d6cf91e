import type { Db } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { findFirst } from "./page.ts";
import { makeRecords } from "./records.ts";
import { updateIf } from "./writes.ts";

/** An address that is to be notified of a job's end; then its id is the job's. Or of what happened to an approval. */
export type CallbackRecord = TenantOwned & {
  url: string;
  about?: { approvalId: string; moment: "requested" | "decided" };
  /** The tenant whose turns its message takes: the root of those that it made. Absent: its own, in records of earlier releases. */
  owner?: string;
  /** Attempts to send the message; none at first. */
  attempts?: number;
  createdAt: Date;
  /** When it is looked at next; while a message is under way, when that counts as lost. */
  nextAt: Date;
};

/** Where a run reports what happens in it: the address, and whose turns the messages take. */
export type RunCallback = { url: string; owner: string };

export const callbackCollection = defineCollection<CallbackRecord>({
  name: "callbacks",
  indexes: [
    { key: { nextAt: 1 }, name: "due" },
    { key: { owner: 1 }, name: "owner" },
  ],
});

export type CallbackStore = ReturnType<typeof makeCallbackStore>;

export function makeCallbackStore(db: Db) {
  const callbacks = db.collection<CallbackRecord>(callbackCollection.name);
  const { ensure, remove } = makeRecords(callbacks);
  return {
    ensure,
    remove,
    /** How many an owner has; counts no further than `limit`. */
    count: (owner: string, limit: number) => callbacks.countDocuments({ owner }, { limit }),
    /** Those to be looked at, of all tenants but these, the most overdue first. */
    due: (now: Date, limit: number, exceptOwners: readonly string[]) =>
      findFirst(
        callbacks,
        { nextAt: { $lte: now }, owner: { $not: { $in: [...exceptOwners] } } },
        { by: "nextAt", limit },
      ),
    /** Puts off exactly this state of one until `nextAt`; false when another process has it by now. */
    putOff: ({ tenantId, _id, nextAt: from }: CallbackRecord, next: { nextAt: Date; attempts?: number }) =>
      updateIf(callbacks, ofTenant(tenantId, { _id, nextAt: from }), { $set: next }),
  };
}
