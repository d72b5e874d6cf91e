import type { Collection, Document } from "mongodb";
import { ofTenant, type TenantOwned } from "./collection.ts";
import { findFirst } from "./page.ts";
import { changeOne } from "./writes.ts";

/** Something that a suspended job waits for. Its own state decides; what wakes the job only follows it. */
export type AwaitedRecord = TenantOwned & {
  /** `pending` until it has ended, in one of the ways of its kind. */
  status: string;
  createdAt: Date;
  expiresAt: Date;
  /** Set from its end until its job knows of it. */
  unsettledSince?: Date;
  /** The lease under which its job was run when a sweep looked: the worker may not have read the end. */
  seenLease?: string;
};

/** The indexes that each collection of such records has. */
export const awaitedIndexes = [
  { key: { expiresAt: 1 as const }, name: "pending", partialFilterExpression: { status: "pending" } },
  { key: { unsettledSince: 1 as const }, name: "unsettled", sparse: true },
];

/** What the repositories of such records have in common. */
export function makeAwaited<T extends AwaitedRecord>(collection: Collection<T>) {
  // The driver's types cannot follow the fields of a generic record: here they may be any.
  const records = collection as unknown as Collection<TenantOwned & Document>;
  return {
    /** Ends one that is pending and matches; null when it does not: then nothing has changed. */
    async end(
      { tenantId, _id }: TenantOwned,
      fields: { status: string } & Partial<T>,
      { now, filter = {} }: { now: Date; filter?: Document },
    ) {
      const pending = ofTenant(tenantId, { _id, status: "pending", ...filter });
      return (await changeOne(records, pending, { $set: { ...fields, unsettledSince: now } })) as T | null;
    },
    /** Notes that its job knows. */
    async settle(tenantId: string, id: string): Promise<void> {
      await records.updateOne(ofTenant(tenantId, { _id: id }), { $unset: { unsettledSince: "", seenLease: "" } });
    },
    /** Notes that its job was looked at, which may not know yet: the next sweep comes to others first. */
    async putOff({ tenantId, _id, unsettledSince }: AwaitedRecord, seenLease: string | undefined): Promise<void> {
      const $set = { unsettledSince: new Date(), ...(seenLease === undefined ? {} : { seenLease }) };
      await records.updateOne(ofTenant(tenantId, { _id, unsettledSince }), { $set });
    },
    /** Pending ones whose time was over at `now`, of one tenant or across tenants; the most overdue first. */
    overdue(now: Date, { limit, tenantId }: { limit: number; tenantId?: string }) {
      const pending = { status: "pending", expiresAt: { $lte: now } };
      const filter = tenantId === undefined ? pending : ofTenant(tenantId, pending);
      return findFirst(records, filter, { by: "expiresAt", limit }) as unknown as Promise<T[]>;
    },
    /** Ended ones, of all tenants, whose job does not know since `before`. */
    unsettled: (before: Date, limit: number) =>
      findFirst(records, { unsettledSince: { $lt: before } }, { by: "unsettledSince", limit }) as unknown as Promise<
        T[]
      >,
  };
}
