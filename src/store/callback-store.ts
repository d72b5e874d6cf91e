import type { Db } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { findDue } from "./page.ts";
import { makeRecords } from "./records.ts";
import { updateIf } from "./writes.ts";

/** An address that is to be notified of a job's end; then its id is the job's. Or of what happened to an approval. */
export type CallbackRecord = TenantOwned & {
  url: string;
  about?: { approvalId: string; moment: "requested" | "decided" };
  /**
   * The tenant whose turns the message takes: the root of the tenant's organization tree. Absent in records of earlier
   * releases: the tenant itself.
   */
  owner?: string;
  /** Attempts to send the message; none at first. */
  attempts?: number;
  createdAt: Date;
  /** When the sweep looks at it next. While a message is under way: when that message counts as lost. */
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

export function makeCallbackStore(db: Db) {
  const callbacks = db.collection<CallbackRecord>(callbackCollection.name);
  const { ensure, remove } = makeRecords(callbacks);
  return {
    ensure,
    remove,
    /** How many an owner has; counts no further than `limit`. */
    count: (owner: string, limit: number) => callbacks.countDocuments({ owner }, { limit }),
    /** Callbacks that are due, of all tenants except these, most overdue first. */
    due: (now: Date, limit: number, exceptOwners: readonly string[]) =>
      findDue(callbacks, now, { by: "nextAt", limit, except: { owner: exceptOwners } }),
    /** Postpones a callback to `nextAt` if its state is still this one. Returns false if another process was faster. */
    putOff: ({ tenantId, _id, nextAt: from }: CallbackRecord, next: { nextAt: Date; attempts?: number }) =>
      updateIf(callbacks, ofTenant(tenantId, { _id, nextAt: from }), { $set: next }),
  };
}
