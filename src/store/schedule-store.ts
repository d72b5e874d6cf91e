import type { Db } from "mongodb";
import { defineCollection, ofTenant } from "./collection.ts";
import type { StoredCaller } from "./key-store.ts";
import { findDue, findPage, type Page, type PageQuery } from "./page.ts";
import { makeVersionedRecords, type VersionedRecord } from "./records.ts";
import { updateIf } from "./writes.ts";

/** Who made a schedule or a trigger: what that starts has the rights of its key, and ends with it. */
export type StoredMaker = StoredCaller & { endsAt?: Date };

/** When something is started, and what. Its next firing stands on it, and is taken by compare-and-set. */
export type ScheduleRecord = VersionedRecord & {
  name: string;
  /** One of the three. `every` is in ms; `at` is a date and time, of the zone where it names none. */
  cron?: string;
  every?: number;
  at?: string;
  timezone: string;
  /** Where the intervals of `every` are counted from. */
  anchorAt: Date;
  /** JSON: names in it may be ones that the store has a meaning for. */
  target: string;
  input?: string;
  overlap: "skip" | "queue";
  catchUp: "none" | "one";
  jitterMs: number;
  isEnabled: boolean;
  /** Why it was disabled, if nobody did it. */
  disabledBecause?: string;
  maker: StoredMaker;
  /** The next time that it is to be started for; none when it is disabled, or there is no further one. */
  slotAt?: Date;
  /** When that is taken: its jitter later. */
  dueAt?: Date;
  /** What it started last. */
  last?: { firingId: string; jobId: string };
};

/** What a replacement changes. */
export type ScheduleChange = Omit<ScheduleRecord, keyof VersionedRecord | "last">;

/** The firing that a schedule comes to next. */
type NextSlot = Pick<ScheduleRecord, "slotAt" | "dueAt" | "last">;

export const scheduleCollection = defineCollection<ScheduleRecord>({
  name: "schedules",
  indexes: [
    { key: { tenantId: 1, _id: -1 }, name: "tenant_newest" },
    { key: { dueAt: 1 }, name: "due", sparse: true },
  ],
});

export function makeScheduleStore(db: Db) {
  const schedules = db.collection<ScheduleRecord>(scheduleCollection.name);
  const absent = ({ slotAt, dueAt }: NextSlot) => ({
    ...(slotAt === undefined ? { slotAt: "" as const } : {}),
    ...(dueAt === undefined ? { dueAt: "" as const } : {}),
  });
  return {
    ...makeVersionedRecords<ScheduleRecord, ScheduleChange>(schedules, [
      "cron",
      "every",
      "at",
      "input",
      "disabledBecause",
      "slotAt",
      "dueAt",
    ]),
    list: (tenantId: string, page: PageQuery): Promise<Page<ScheduleRecord>> => findPage(schedules, { tenantId, page }),
    /** Those whose time has come, of all tenants but these, the most overdue first. */
    due: (now: Date, limit: number, exceptTenants: readonly string[]) =>
      findDue(schedules, now, { by: "dueAt", limit, except: { tenantId: exceptTenants } }),
    /** Puts the next firing in the place of exactly this one; false when it was taken, or the schedule was replaced. */
    advance: ({ tenantId, _id, version, slotAt }: ScheduleRecord, next: NextSlot): Promise<boolean> =>
      updateIf(schedules, ofTenant(tenantId, { _id, version, ...(slotAt ? { slotAt } : {}) }), {
        $set: next,
        $unset: absent(next),
      }),
    /** Disables this version of one, for a reason that it says. */
    disable: ({ tenantId, _id, version }: ScheduleRecord, disabledBecause: string): Promise<boolean> =>
      updateIf(schedules, ofTenant(tenantId, { _id, version }), {
        $set: { isEnabled: false, disabledBecause, updatedAt: new Date() },
        $unset: { slotAt: "", dueAt: "" },
      }),
  };
}
