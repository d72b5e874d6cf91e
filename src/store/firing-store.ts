import type { Db } from "mongodb";
import type { ErrorView } from "../lib/errors.ts";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { findDue, findPage, type Page, type PageQuery } from "./page.ts";
import { makeRecords } from "./records.ts";
import { updateIf } from "./writes.ts";

/** `starting` and `waiting` (for the one before it) are open; the others stay. */
export const firingStates = ["starting", "waiting", "started", "skipped", "missed", "failed"] as const;
type FiringState = (typeof firingStates)[number];

/**
 * One time that a schedule or a trigger starts something. The id is made of its schedule and slot, or of its trigger and event: so
 * there is one, whoever takes it. What is decided for it is on it from its insertion on.
 */
export type FiringRecord = TenantOwned & {
  /** The schedule or the trigger. */
  ownerId: string;
  /** The time that it is for; of a trigger, when the event arrived. */
  slotAt: Date;
  status: FiringState;
  /** The id of the job that it starts, at every attempt. */
  jobId: string;
  /** The slot after it, if there is one. */
  nextSlotAt?: Date;
  /** Set for one that somebody asked for: it moves no slot. */
  isManual?: true;
  eventId?: string;
  /** Further slots that passed while nobody could take them. */
  missed?: number;
  /** Documents that a refresh of a collection has marked; it has no job of its own. */
  documents?: number;
  /** The one that it waits for. */
  after?: { firingId: string; jobId: string };
  reason?: string;
  error?: ErrorView;
  attempts: number;
  createdAt: Date;
  startedAt?: Date;
  /** While it is open: when it is looked at next, or counts as lost. */
  nextAt?: Date;
  expireAt: Date;
};

export const firingCollection = defineCollection<FiringRecord>({
  name: "firings",
  indexes: [
    { key: { tenantId: 1, ownerId: 1, _id: -1 }, name: "owner_newest" },
    { key: { tenantId: 1, _id: -1 }, name: "tenant_newest" },
    { key: { nextAt: 1 }, name: "due", sparse: true },
    { key: { "after.firingId": 1 }, name: "after", sparse: true },
    { key: { expireAt: 1 }, name: "expire", expireAfterSeconds: 0 },
  ],
});

/** Firings that are kept of a tenant, of all its schedules and triggers: the newest ones. */
const MAX_FIRINGS = 100_000;
/** One in so many new ones, by chance, has the oldest of its tenant removed, of which so many go at once. */
const TRIM_EVERY = 500;
const TRIMMED = 2_000;

/** How one ends. */
export type FiringEnd = Pick<FiringRecord, "status"> & Partial<Pick<FiringRecord, "documents" | "error" | "reason">>;

type Id = Pick<FiringRecord, "_id">;

export type FiringStore = ReturnType<typeof makeFiringStore>;

export function makeFiringStore(db: Db, { most = MAX_FIRINGS, trimEvery = TRIM_EVERY } = {}) {
  const firings = db.collection<FiringRecord>(firingCollection.name);
  const { ensure, get, count } = makeRecords(firings);
  /** Removes the oldest ones of a tenant that have ended and are too many, a bounded number at once. */
  const trim = async (tenantId: string): Promise<void> => {
    const excess = (await count(tenantId, most + TRIMMED)) - most;
    if (excess <= 0) return;
    const ended = ofTenant(tenantId, { nextAt: { $exists: false } });
    const found = await firings.find(ended).project<Id>({ _id: 1 }).sort({ _id: 1 }).limit(excess).toArray();
    await firings.deleteMany(ofTenant(tenantId, { _id: { $in: found.map(({ _id }) => _id) } }));
  };
  return {
    /** Adds one unless it is there. Returns the stored one. */
    async ensure(record: FiringRecord): Promise<FiringRecord> {
      const stored = await ensure(record);
      if (stored === record && Math.random() * trimEvery < 1) await trim(record.tenantId);
      return stored;
    },
    get,
    list: (tenantId: string, ownerId: string, page: PageQuery): Promise<Page<FiringRecord>> =>
      findPage(firings, { tenantId, page, filter: { ownerId } }),
    /** Open ones that are to be looked at, of all tenants but these, the most overdue first. */
    due: (now: Date, limit: number, exceptTenants: readonly string[]) =>
      findDue(firings, now, { by: "nextAt", limit, except: { tenantId: exceptTenants } }),
    /** How many of an owner wait; counts no further than `limit`. */
    countWaiting: (tenantId: string, ownerId: string, limit: number) =>
      firings.countDocuments(ofTenant(tenantId, { ownerId, status: "waiting" as const }), { limit }),
    /** Changes exactly this state of an open one; false when another process has it by now. */
    putOff: (
      { tenantId, _id, nextAt }: FiringRecord,
      next: Pick<FiringRecord, "attempts" | "status"> & { nextAt: Date },
    ): Promise<boolean> =>
      updateIf(firings, ofTenant(tenantId, { _id, ...(nextAt ? { nextAt } : {}) }), { $set: next }),
    /** Has the one that waits for this one looked at soon. */
    async wakeNext({ tenantId, _id }: FiringRecord, nextAt: Date): Promise<void> {
      const waits = { "after.firingId": _id, status: "waiting" as const, nextAt: { $gt: nextAt } };
      await firings.updateOne(ofTenant(tenantId, waits), { $set: { nextAt } });
    },
    /** Ends an open one; false when it has ended. */
    end: ({ tenantId, _id }: FiringRecord, end: FiringEnd): Promise<boolean> =>
      updateIf(firings, ofTenant(tenantId, { _id, nextAt: { $exists: true } }), {
        $set: { ...end, startedAt: new Date() },
        $unset: { nextAt: "" },
      }),
  };
}
