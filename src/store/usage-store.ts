import type { Db } from "mongodb";
import { defineCollection, ofTenant } from "./collection.ts";
import { type Addition, type CountedRecord, makeCountedOnce, type UsageBatch } from "./counted-once.ts";
import { type BucketCounts, bucketFields } from "./latency-buckets.ts";

/** What is counted. Cost is in billionths of a US dollar: integers, so that any number of sums stays exact. */
export const usageCounters = ["requests", "errors", "inputTokens", "outputTokens", "costNanoUsd"] as const;
export type UsageCounters = Record<(typeof usageCounters)[number], number>;

/**
 * The counters of one tenant, day (UTC, `YYYY-MM-DD`), model, surface and API key, and the buckets of the calls' times; what
 * single records add has documents of its own.
 */
export type UsageRecord = CountedRecord &
  UsageCounters & {
    day: string;
    model: string;
    surface: string;
    /** Absent in counters of earlier releases. */
    keyId?: string;
  };

/** The same of one hour (UTC, `YYYY-MM-DDTHH`), for a month; and of one day and end user, for a year. */
type UsageDetailRecord = CountedRecord &
  UsageCounters &
  Partial<Record<"hour" | "model" | "surface" | "keyId" | "day" | "endUser", string>> & { expiresAt: Date };

export type UsageIncrement = UsageCounters & {
  tenantId: string;
  day: string;
  model: string;
  surface: string;
  keyId: string;
  /** What counts it by the hour; absent: nothing does. Its names may be others than those of the day. */
  inHour?: { hour: string; model: string; surface: string; keyId: string };
  /** End user for whom the calls were made. */
  endUser?: string;
  times?: BucketCounts;
};

/** The field by which each grouping sums. */
const groupedBy = {
  model: "model",
  surface: "surface",
  day: "day",
  hour: "hour",
  key: "keyId",
  subject: "endUser",
} as const;
export type UsageGrouping = keyof typeof groupedBy;
export const usageGroupings = Object.keys(groupedBy) as [UsageGrouping, ...UsageGrouping[]]; // the literal has no other keys
/** The group for counters of earlier releases that lack this field. */
const UNKNOWN = "unknown";
export type UsageRow = UsageCounters & { group: string; times?: BucketCounts };
/** First and last day, both included, and filters for the calls to sum. */
export type UsageSpan = { from: string; to: string };
export type UsageFilter = { model?: string; surface?: string; keyId?: string };

export const usageCollection = defineCollection<UsageRecord>({
  name: "usage",
  indexes: [{ key: { tenantId: 1, day: 1 }, name: "tenant_day" }],
});

export const usageDetailCollection = defineCollection<UsageDetailRecord>({
  name: "usageDetails",
  indexes: [
    { name: "tenant_hour", key: { tenantId: 1, hour: 1 } },
    { name: "tenant_day", key: { tenantId: 1, day: 1 } },
    { name: "expiry", key: { expiresAt: 1 }, expireAfterSeconds: 0 },
  ],
});

/** How long hours, and days of end users, are kept after their start, in ms. */
const KEEP_HOURS_MS = 32 * 86_400_000;
const KEEP_END_USERS_MS = 366 * 86_400_000;

/** Most rows of one report. */
export const MAX_USAGE_ROWS = 1_000;
const sumsOf = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, { $sum: `$${name}` }]));
const counterSums = sumsOf(usageCounters);
const sums = { ...counterSums, ...sumsOf(bucketFields) };

export type UsageStore = ReturnType<typeof makeUsageStore>;

export function makeUsageStore(db: Db) {
  const days = db.collection<UsageRecord>(usageCollection.name);
  const details = db.collection<UsageDetailRecord>(usageDetailCollection.name);
  const dayCounts = makeCountedOnce(db, usageCollection.name);
  const detailCounts = makeCountedOnce(db, usageDetailCollection.name);
  return {
    /** Adds the increments of a batch, each exactly once however often the batch is written before its writer's next one. */
    async add(batch: UsageBatch, increments: readonly UsageIncrement[]): Promise<void> {
      const writes = [dayCounts.add(batch, merge(increments.map(toDayAddition)))];
      const detailed = merge(increments.flatMap(toDetailAdditions));
      if (detailed.length > 0) writes.push(detailCounts.add(batch, detailed));
      await Promise.allSettled(writes); // both have ended before anything is tried again
      await Promise.all(writes);
    },
    /** Adds the increment of one log record, exactly once however often and however late it is written. */
    async addRecord(logId: string, increment: UsageIncrement): Promise<void> {
      const { tenantId, day, model, surface } = increment;
      // An earlier release had one document for all keys.
      if (await dayCounts.hasRecord(logId, { tenantId, key: [tenantId, day, model, surface] })) return;
      await dayCounts.addRecord(logId, toDayAddition(increment));
      for (const addition of toDetailAdditions(increment)) await detailCounts.addRecord(logId, addition);
    },
    /** What the calls of several tenants cost together between two days, both included. */
    async costOf(tenantIds: readonly string[], span: UsageSpan): Promise<number> {
      const [sum] = await days
        .aggregate<{ costNanoUsd: number }>([
          { $match: { tenantId: { $in: [...tenantIds] }, day: within(span) } },
          { $group: { _id: null, costNanoUsd: { $sum: "$costNanoUsd" } } },
        ])
        .toArray();
      return sum?.costNanoUsd ?? 0;
    },
    /** What the calls of each of these tenants came to between two days, both included; without those that made none. */
    async sumsOf(tenantIds: readonly string[], span: UsageSpan): Promise<Map<string, UsageCounters>> {
      const rows = await days
        .aggregate<UsageCounters & { _id: string }>([
          { $match: { tenantId: { $in: [...tenantIds] }, day: within(span) } },
          { $group: { _id: "$tenantId", ...counterSums } },
        ])
        .toArray();
      return new Map(rows.map(({ _id, ...counters }) => [_id, counters]));
    },
    /** Sums between two days, both included; the largest cost first, days and hours in order. */
    async sum(
      tenantId: string,
      { from, to, groupBy, filter = {} }: UsageSpan & { groupBy: UsageGrouping; filter?: UsageFilter },
    ): Promise<UsageRow[]> {
      const rows = await sumIn(groupBy, { tenantId, span: { from, to }, filter }).toArray();
      return rows.map(({ _id, ...totals }) => ({ group: _id ?? UNKNOWN, ...readTotals(totals) }));
    },
  };

  function sumIn(groupBy: UsageGrouping, { tenantId, span, filter }: SumOptions) {
    const field = groupedBy[groupBy];
    const isDetail = groupBy === "hour" || groupBy === "subject";
    const time = groupBy === "hour" ? { hour: { $gte: span.from, $lte: `${span.to}T24` } } : { day: within(span) };
    const inOrder = groupBy === "day" || groupBy === "hour";
    const stages = [
      { $match: ofTenant(tenantId, { ...time, ...filter }) },
      { $group: { _id: `$${field}`, ...sums } },
      { $sort: inOrder ? { _id: 1 } : { costNanoUsd: -1, requests: -1, _id: 1 } },
      { $limit: MAX_USAGE_ROWS },
    ];
    return isDetail ? details.aggregate<Sum>(stages) : days.aggregate<Sum>(stages);
  }
}

type SumOptions = { tenantId: string; span: UsageSpan; filter: UsageFilter };
type Sum = UsageCounters & BucketCounts & { _id: string | null };

const within = ({ from, to }: UsageSpan) => ({ $gte: from, $lte: to });

/** The counters, and the buckets that are not empty. */
function readTotals(totals: UsageCounters & BucketCounts): UsageCounters & { times?: BucketCounts } {
  const counted = bucketFields.filter((name) => (totals[name] ?? 0) > 0).map((name) => [name, totals[name] ?? 0]);
  const { requests, errors, inputTokens, outputTokens, costNanoUsd } = totals;
  const counters = { requests, errors, inputTokens, outputTokens, costNanoUsd };
  return counted.length === 0 ? counters : { ...counters, times: Object.fromEntries(counted) };
}

function countsOf(increment: UsageIncrement): Record<string, number> {
  const counters = usageCounters.map((name) => [name, increment[name]] as const);
  return { ...Object.fromEntries(counters), ...increment.times };
}

function toDayAddition(increment: UsageIncrement): Addition {
  const { tenantId, day, model, surface, keyId } = increment;
  const fields = { day, model, surface, keyId };
  return { key: [tenantId, day, model, surface, keyId], tenantId, fields, counts: countsOf(increment) };
}

/** What counts an increment by the hour and by the end user, as far as it says so. */
function toDetailAdditions(increment: UsageIncrement): Addition[] {
  const { tenantId, day, inHour, endUser } = increment;
  const counts = countsOf(increment);
  const additions: Addition[] = [];
  if (inHour !== undefined) {
    const { hour, model, surface, keyId } = inHour;
    const fields = { ...inHour, expiresAt: new Date(Date.parse(`${hour}:00Z`) + KEEP_HOURS_MS) };
    additions.push({ key: [tenantId, "hour", hour, model, surface, keyId], tenantId, fields, counts });
  }
  if (endUser !== undefined) {
    const fields = { day, endUser, expiresAt: new Date(Date.parse(day) + KEEP_END_USERS_MS) };
    additions.push({ key: [tenantId, "user", day, endUser], tenantId, fields, counts });
  }
  return additions;
}

/** Merges additions to the same document. */
function merge(additions: readonly Addition[]): Addition[] {
  const merged = new Map<string, Addition>();
  for (const addition of additions) {
    const key = JSON.stringify(addition.key);
    const known = merged.get(key);
    if (known === undefined) {
      merged.set(key, { ...addition, counts: { ...addition.counts } });
      continue;
    }
    for (const [name, count] of Object.entries(addition.counts)) known.counts[name] = (known.counts[name] ?? 0) + count;
  }
  return [...merged.values()];
}
