import type { Db } from "mongodb";
import { ofTenant } from "./collection.ts";
import { bucketFields } from "./latency-buckets.ts";
import {
  type UsageCounters,
  type UsageFilter,
  usageCollection,
  usageCounters,
  usageDetailCollection,
} from "./usage-store.ts";

/** By what the calls of a time can be divided, and the field of each. */
const dividedBy = { model: "model", surface: "surface", key: "keyId" } as const;
export type UsageDivision = keyof typeof dividedBy;
export const usageDivisions = Object.keys(dividedBy) as [UsageDivision, ...UsageDivision[]]; // the literal has no other keys

/** The first and the last time, both included, as `2026-11-20T13` or as `2026-11-20`. */
type SeriesSpan = { step: "hour" | "day"; from: string; to: string; filter: UsageFilter };
type Totals = UsageCounters & Record<string, number>;
/** What the calls of one time came to. `counts` has the buckets of their times too. */
export type SeriesRow = { at: string; counts: Totals };
export type DividedRow = SeriesRow & { name: string };

const sumsOf = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, { $sum: `$${name}` }]));
const counterSums = sumsOf(usageCounters);
const allSums = { ...counterSums, ...sumsOf(bucketFields) };

export type UsageSeriesStore = ReturnType<typeof makeUsageSeries>;

/** Sums of usage over time. Each reads the tenant's counters between two times, by an index. */
export function makeUsageSeries(db: Db) {
  const collections = { day: db.collection(usageCollection.name), hour: db.collection(usageDetailCollection.name) };
  const match = (tenantId: string, { step, from, to, filter }: SeriesSpan, names: object = {}) => ({
    $match: ofTenant(tenantId, { [step]: { $gte: from, $lte: to }, ...filter, ...names }),
  });
  return {
    /** What the calls of each time came to, without times that had none. */
    async totals(tenantId: string, span: SeriesSpan): Promise<SeriesRow[]> {
      const rows = await collections[span.step]
        .aggregate<Totals & { _id: string }>([match(tenantId, span), { $group: { _id: `$${span.step}`, ...allSums } }])
        .toArray();
      return rows.map(({ _id, ...counts }) => ({ at: _id, counts }));
    },
    /** The same for each of the `most` names that cost most. */
    async divided(
      tenantId: string,
      { by, most, ...span }: SeriesSpan & { by: UsageDivision; most: number },
    ): Promise<DividedRow[]> {
      const field = dividedBy[by];
      const collection = collections[span.step];
      const order = { $sort: { costNanoUsd: -1, requests: -1, _id: 1 } } as const;
      const found = await collection
        .aggregate<{ _id: string | null }>([
          match(tenantId, span),
          { $group: { _id: `$${field}`, ...counterSums } },
          order,
          { $limit: most },
        ])
        .toArray();
      const names = found.map(({ _id }) => _id).filter((name) => name !== null);
      if (names.length === 0) return [];
      const rows = await collection
        .aggregate<Totals & { _id: { at: string; name: string } }>([
          match(tenantId, span, { [field]: { $in: names } }),
          { $group: { _id: { at: `$${span.step}`, name: `$${field}` }, ...counterSums } },
        ])
        .toArray();
      return rows.map(({ _id, ...counts }) => ({ ..._id, counts }));
    },
  };
}
