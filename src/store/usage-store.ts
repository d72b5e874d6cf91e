import type { Db, Document, Filter } from "mongodb";
import { defineCollection, ofTenant } from "./collection.ts";
import { runWrite } from "./writes.ts";

/** What is counted. Cost is in billionths of a US dollar: integers, so that any number of sums stays exact. */
const counters = ["requests", "errors", "inputTokens", "outputTokens", "costNanoUsd"] as const;
type UsageCounters = Record<(typeof counters)[number], number>;

/**
 * The counters of one tenant, day (UTC, `YYYY-MM-DD`), model, surface and API key; what single records add has documents of its own.
 * Each remembers what was added to it, so that a repeated write adds nothing twice.
 */
export type UsageDocument = UsageCounters & {
  _id: string;
  tenantId: string;
  day: string;
  model: string;
  surface: string;
  /** Absent in what an earlier release counted. */
  keyId?: string;
  /** The last batch of each writer, by the writer's id: one a process that had calls of these on this day. */
  last?: Record<string, number>;
  /** The single records that were added. */
  records?: string[];
};

/** A batch of one writer, whose next one has the next number once this one is added. */
export type UsageBatch = { writer: string; number: number };
export type UsageIncrement = UsageCounters &
  Required<Pick<UsageDocument, "tenantId" | "day" | "model" | "surface" | "keyId">>;
/** The field by which each grouping sums. */
const groupedBy = { model: "model", surface: "surface", day: "day", key: "keyId" } as const;
export type UsageGrouping = keyof typeof groupedBy;
export const usageGroupings = Object.keys(groupedBy) as [UsageGrouping, ...UsageGrouping[]]; // the literal has no other keys
/** The group of what an earlier release counted without it. */
const UNKNOWN = "unknown";
export type UsageRow = UsageCounters & { group: string };

export const usageCollection = defineCollection<UsageDocument>({
  name: "usage",
  indexes: [{ key: { tenantId: 1, day: 1 }, name: "tenant_day" }],
});

/** Characters of a ULID's time: half a minute shares documents. The last, random character spreads a burst over 32. */
const SPAN_CHARACTERS = 7;
const MAX_ROWS = 1_000;
const sums = Object.fromEntries(counters.map((counter) => [counter, { $sum: `$${counter}` }]));

export type UsageStore = ReturnType<typeof makeUsageStore>;

export function makeUsageStore(db: Db) {
  const collection = db.collection<UsageDocument>(usageCollection.name);
  const addOnce = async (increment: UsageIncrement, memory: Memory, attemptsLeft = 3): Promise<void> => {
    const { tenantId, day, model, surface, keyId, ...counts } = increment;
    const _id = JSON.stringify([tenantId, day, model, surface, keyId, ...memory.place]);
    const update = { ...memory.note, $inc: counts, $setOnInsert: { day, model, surface, keyId } };
    const updates = [{ q: { _id, tenantId, ...memory.isNew }, u: update, upsert: true }];
    const { duplicates } = await runWrite(db, { update: usageCollection.name, updates });
    if (duplicates === 0) return;
    // The document is there and did not match: this was added before, or another process made the document just now.
    const isAdded = (await collection.findOne({ _id, tenantId, ...memory.isOld })) !== null;
    if (isAdded) return;
    if (attemptsLeft <= 1) throw new Error("a usage document is made and removed again and again");
    await addOnce(increment, memory, attemptsLeft - 1);
  };
  return {
    /** Adds the increments of a batch, each exactly once however often the batch is written before its writer's next one. */
    async add(batch: UsageBatch, increments: readonly UsageIncrement[]): Promise<void> {
      const memory = ofBatch(batch);
      await Promise.all(increments.map((increment) => addOnce(increment, memory)));
    },
    /** Adds the increment of one log record, exactly once however often and however late it is written. */
    async addRecord(logId: string, increment: UsageIncrement): Promise<void> {
      const { tenantId, day, model, surface } = increment;
      const memory = ofRecord(logId);
      // An earlier release had one document for all keys.
      const earlier = JSON.stringify([tenantId, day, model, surface, ...memory.place]);
      if ((await collection.findOne({ _id: earlier, tenantId, ...memory.isOld })) !== null) return;
      await addOnce(increment, memory);
    },
    /** What the calls of several tenants cost together between two days, both included. */
    async costOf(tenantIds: readonly string[], { from, to }: { from: string; to: string }): Promise<number> {
      const ofThem = { tenantId: { $in: [...tenantIds] }, day: { $gte: from, $lte: to } };
      const [sum] = await collection
        .aggregate<{ costNanoUsd: number }>([
          { $match: ofThem },
          { $group: { _id: null, costNanoUsd: { $sum: "$costNanoUsd" } } },
        ])
        .toArray();
      return sum?.costNanoUsd ?? 0;
    },
    /** Sums between two days, both included; the largest cost first, days in order. */
    async sum(
      tenantId: string,
      { from, to, groupBy }: { from: string; to: string; groupBy: UsageGrouping },
    ): Promise<UsageRow[]> {
      const rows = await collection
        .aggregate<UsageCounters & { _id: string | null }>([
          { $match: ofTenant(tenantId, { day: { $gte: from, $lte: to } }) },
          { $group: { _id: `$${groupedBy[groupBy]}`, ...sums } },
          { $sort: groupBy === "day" ? { _id: 1 } : { costNanoUsd: -1, requests: -1, _id: 1 } },
          { $limit: MAX_ROWS },
        ])
        .toArray();
      return rows.map(({ _id, ...totals }) => ({ group: _id ?? UNKNOWN, ...totals }));
    },
  };
}

/** The marker against double counting: its place in the key, the filters for "not yet" and "already added", the update that sets it. */
type Memory = { place: string[]; isNew: Filter<UsageDocument>; isOld: Filter<UsageDocument>; note: Document };

/** A writer adds its batches in order: one that is not after the last has been added. */
function ofBatch({ writer, number }: UsageBatch): Memory {
  const field = `last.${writer}`;
  const isAdded = { $gte: number };
  return {
    place: [],
    isNew: { [field]: { $not: isAdded } },
    isOld: { [field]: isAdded },
    note: { $set: { [field]: number } },
  };
}

/** A record may be repeated at any time, so the ids of all are kept, in documents that stay small. */
function ofRecord(logId: string): Memory {
  const ulid = logId.slice(logId.indexOf("_") + 1);
  return {
    place: [`${ulid.slice(0, SPAN_CHARACTERS)}${ulid.at(-1)}`],
    isNew: { records: { $ne: logId } },
    isOld: { records: logId },
    note: { $push: { records: logId } },
  };
}
