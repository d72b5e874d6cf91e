import type { Collection, Document, Filter, UpdateFilter } from "mongodb";
import { ofTenant, type TenantOwned } from "./collection.ts";
import { findFirst } from "./page.ts";
import { isStoreUnavailable, isWaitOver } from "./store-errors.ts";
import { changeOne, insertAgain, insertOrFind, updateIf } from "./writes.ts";

type AnyDocument = TenantOwned & Document;

/** The driver's types cannot follow the fields of a generic record: here they may be any. */
const untyped = <T extends TenantOwned>(records: Collection<T>) => records as unknown as Collection<AnyDocument>;

/** What the repositories of tenants' records have in common. */
export function makeRecords<T extends TenantOwned>(collection: Collection<T>) {
  const records = untyped(collection);
  return {
    /** @throws the driver's error 11000 when one of its id, or of another unique value, is there. */
    async insert(record: T): Promise<void> {
      try {
        await records.insertOne(record);
      } catch (error) {
        // A standalone server is asked once by the driver: what it has taken, and could not answer, is there then.
        if (!isStoreUnavailable(error) || isWaitOver(error)) throw error;
        await insertAgain(records, record);
      }
    },
    /** Adds a record unless one with its id exists. Returns the stored one. */
    ensure: (record: T): Promise<T> =>
      insertOrFind(records, record, ofTenant(record.tenantId, { _id: record._id })) as Promise<T>,
    get: (tenantId: string, id: string): Promise<T | null> => records.findOne<T>(ofTenant(tenantId, { _id: id })),
    /** How many of them a tenant has; counts no further than `limit`. */
    count: (tenantId: string, limit: number) => records.countDocuments(ofTenant(tenantId), { limit }),
    /** Returns false if it did not exist. */
    remove: async (tenantId: string, id: string): Promise<boolean> =>
      (await records.deleteOne(ofTenant(tenantId, { _id: id }))).deletedCount === 1,
  };
}

/** A record that is replaced version by version. */
export type VersionedRecord = TenantOwned & {
  /** 1 at creation, one more at each replacement. */
  version: number;
  /** Who made it: they, and admins, may change it. */
  createdBy: string;
  createdAt: Date;
  updatedAt: Date;
};

/** As `makeRecords`, for records with versions. `optional`: fields that a replacement without them removes. */
export function makeVersionedRecords<T extends VersionedRecord, Change>(
  collection: Collection<T>,
  optional: readonly (keyof Change)[] = [],
) {
  const records = untyped(collection);
  return {
    ...makeRecords(collection),
    /** Replaces `version` by the next version. Returns null if the record does not have that version any more. */
    async replace(tenantId: string, id: string, { version, change }: { version: number; change: Change }) {
      const missing = optional.filter((field) => change[field] === undefined).map((field) => [field, ""]);
      const replaced = await changeOne(records, ofTenant(tenantId, { _id: id, version }), {
        $set: { ...change, updatedAt: new Date() },
        $inc: { version: 1 },
        ...(missing.length > 0 ? { $unset: Object.fromEntries(missing) } : {}),
      });
      return replaced as T | null;
    },
  };
}

/** A record of work that a job does. Whether it waits or runs is on that job. */
export type StoredWork = TenantOwned & {
  jobId: string;
  /** True until the work has ended, and then absent. */
  isOpen?: true;
  createdAt: Date;
  updatedAt: Date;
  /** When it was first started. */
  startedAt?: Date;
};

/** For records of work; what has ended is never changed. `unfinished` finds those that are `watched`, with `fields`. */
export function makeWorkRecords<T extends StoredWork, const F extends keyof T & string>(
  collection: Collection<T>,
  { watched, fields }: { watched: Filter<T>; fields: readonly F[] },
) {
  const records = untyped(collection);
  const open = (tenantId: string, id: string) => ofTenant(tenantId, { _id: id, isOpen: true as const });
  return {
    ...makeRecords(collection),
    /** Changes an open record that matches `filter`. Returns false, and changes nothing, if there is none. */
    update(tenantId: string, id: string, { $set, ...more }: UpdateFilter<T>, filter: Filter<T> = {}) {
      const update: Document = { ...more, $set: { updatedAt: new Date(), ...$set } };
      const matching: Document = { ...filter, ...open(tenantId, id) };
      return updateIf(records, matching, update);
    },
    /** Records that the work is running now; its start is the first one. Returns null if it has ended. */
    async begin(tenantId: string, id: string, { $set, ...more }: UpdateFilter<T> = {}): Promise<T | null> {
      const now = new Date();
      const update: Document = { ...more, $min: { startedAt: now }, $set: { updatedAt: now, ...$set } };
      return (await changeOne(records, open(tenantId, id), update)) as T | null;
    },
    /** Records of all tenants without a change since `before`, longest unchanged first. */
    unfinished({ before, limit }: { before: Date; limit: number }) {
      const matching: Document = { ...watched, updatedAt: { $lt: before } };
      return findFirst<AnyDocument, Pick<T, "_id" | F>>(records, matching, { by: "updatedAt", limit, fields });
    },
    /** Moves an open record to the end of `unfinished`. */
    touch: async (tenantId: string, id: string): Promise<void> =>
      void (await records.updateOne(open(tenantId, id), { $set: { updatedAt: new Date() } })),
  };
}
