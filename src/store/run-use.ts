import { calculateObjectSize } from "bson";
import type { Collection, Document } from "mongodb";
import { ofTenant } from "./collection.ts";
import type { StoredWork } from "./records.ts";
import type { UseStore } from "./use-store.ts";

/** What every run counts when it begins, at least, in bytes: small ones are not counted again when they end. */
const LEAST_BYTES = 4 << 10;

/** A run that counts among those that its tenant keeps. */
export type CountedRun = StoredWork & {
  /** The bytes by which it counts. Absent in records of earlier releases, which do not count. */
  bytes?: number;
  /** When the store forgets it, of one that it does forget. */
  expireAt?: Date;
  /** The budgets that bound it and all that it starts; absent of a run that none does. */
  boundBy?: readonly string[];
};

/** The bytes by which a run counts that is about to be recorded. */
export const bytesOfRun = (record: object): number => Math.max(LEAST_BYTES, calculateObjectSize(record));

/** How a run that is gone counts. */
export function toRemoved({
  tenantId,
  bytes,
  expireAt: expiresAt,
}: Pick<CountedRun, "tenantId" | "bytes" | "expireAt">) {
  return bytes === undefined ? [] : [{ ...placeOf({ tenantId, expiresAt }), bytes: -bytes, records: -1 }];
}

const placeOf = ({ tenantId, expiresAt }: { tenantId: string; expiresAt: Date | undefined }) => {
  return { tenantId, kind: "runs" as const, ...(expiresAt ? { expiresAt } : {}) };
};

type Records<T> = {
  insert(record: T): Promise<void>;
  ensure(record: T): Promise<T>;
  remove(tenantId: string, id: string): Promise<boolean>;
};

/**
 * Counts the runs of a collection as they come, end and go, with their bytes. A process that ends between a write and its count
 * counts too few by what it was about to count, or too many by what it has removed. `parts`: where the results of their steps are, each with its `bytes`.
 */
export function countRuns<T extends CountedRun>(
  runs: Collection<T>,
  { records, use, parts }: { records: Records<T>; use: UseStore; parts?: Collection<PartOfRun> | undefined },
) {
  const untyped = runs as unknown as Collection<CountedRun>; // the driver's types cannot follow a generic record's fields
  const count = ({ tenantId, expireAt }: CountedRun, bytes: number, number: number) =>
    use.add({ ...placeOf({ tenantId, expiresAt: expireAt }), bytes, records: number });
  const withUse = (record: T): T & { bytes: number } => ({ ...record, bytes: bytesOfRun(record) });
  const find = (tenantId: string, id: string) =>
    untyped.findOne<CountedRun>(ofTenant(tenantId, { _id: id }), { projection: aboutUse });
  return {
    async insert(record: T): Promise<void> {
      const counted = withUse(record);
      await Promise.all([records.insert(counted), count(counted, counted.bytes, 1)]);
    },
    async ensure(record: T): Promise<T> {
      const counted = withUse(record);
      const found = await records.ensure(counted);
      if (found === counted) await count(counted, counted.bytes, 1);
      return found;
    },
    async remove(tenantId: string, id: string): Promise<boolean> {
      const record = await find(tenantId, id);
      const isRemoved = await records.remove(tenantId, id);
      if (isRemoved && record) await use.addAll(toRemoved(record));
      return isRemoved;
    },
    /**
     * Counts what a run that has ended just now has besides what it began with: `own` in its record, and its parts, whose bytes
     * are summed up unless `partBytes` says them.
     */
    async settle(tenantId: string, id: string, own: object, partBytes?: number): Promise<void> {
      const bytes = calculateObjectSize(own) + (partBytes ?? (parts ? await sumParts(parts, tenantId, id) : 0));
      if (bytes <= LEAST_BYTES) return; // it counted as much when it began
      const record = await find(tenantId, id);
      if (record?.bytes === undefined) return;
      await untyped.updateOne(ofTenant(tenantId, { _id: id }), { $inc: { bytes } });
      await count(record, bytes, 0);
    },
  };
}

/** The fields of a run by which it counts. */
export const aboutUse = { tenantId: 1, bytes: 1, expireAt: 1 } as const;

/** A record that belongs to a run. Older ones have no bytes. */
export type PartOfRun = { tenantId: string; runId: string; bytes?: number };

/** A record that belongs to a run, with its bytes. */
export const withBytes = <T extends Document>(part: T): T & { bytes: number } => {
  return { ...part, bytes: calculateObjectSize(part) };
};

async function sumParts(parts: Collection<PartOfRun>, tenantId: string, runId: string): Promise<number> {
  let sum = 0;
  for await (const { bytes = 0 } of parts.find(ofTenant(tenantId, { runId }), { projection: { bytes: 1 } }))
    sum += bytes;
  return sum;
}
