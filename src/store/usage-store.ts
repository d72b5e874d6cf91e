import type { Db } from "mongodb";
import { defineCollection, ofTenant } from "./collection.ts";
import { runWrite } from "./write-command.ts";

/** What is counted. Cost is in billionths of a US dollar: integers, so that any number of sums stays exact. */
type UsageCounters = {
  requests: number;
  errors: number;
  inputTokens: number;
  outputTokens: number;
  costNanoUsd: number;
};

/** The counters of one tenant, day (UTC, `YYYY-MM-DD`), model and surface. */
export type UsageDocument = UsageCounters & {
  _id: string;
  tenantId: string;
  day: string;
  model: string;
  surface: string;
  /** The last batches that were added, so that a repeated write adds nothing twice. */
  batches: string[];
};

export type UsageIncrement = UsageCounters & { tenantId: string; day: string; model: string; surface: string };
export const usageGroupings = ["model", "surface", "day"] as const;
export type UsageGrouping = (typeof usageGroupings)[number];
export type UsageRow = UsageCounters & { group: string };

export const usageCollection = defineCollection<UsageDocument>({
  name: "usage",
  indexes: [{ key: { tenantId: 1, day: 1 }, name: "tenant_day" }],
});

/** More batches than can be in flight at once from all processes; a repeat comes within seconds of its first try. */
const REMEMBERED_BATCHES = 64;
const MAX_ROWS = 1_000;

export type UsageStore = {
  /** Adds the increments of a batch, each exactly once however often the same batch is written. */
  add(batchId: string, increments: readonly UsageIncrement[]): Promise<void>;
  /** Sums between two days, both included; the largest cost first, days in order. */
  sum(tenantId: string, query: { from: string; to: string; groupBy: UsageGrouping }): Promise<UsageRow[]>;
};

export function makeUsageStore(db: Db): UsageStore {
  const collection = db.collection<UsageDocument>(usageCollection.name);
  const addOne = async (batchId: string, increment: UsageIncrement, triesLeft = 3): Promise<void> => {
    const { tenantId, day, model, surface, ...counters } = increment;
    const _id = JSON.stringify([tenantId, day, model, surface]);
    const update = {
      $inc: counters,
      $push: { batches: { $each: [batchId], $slice: -REMEMBERED_BATCHES } },
      $setOnInsert: { day, model, surface },
    };
    const updates = [{ q: { _id, tenantId, batches: { $ne: batchId } }, u: update, upsert: true }];
    const { duplicates } = await runWrite(db, { update: usageCollection.name, updates });
    if (duplicates === 0) return;
    // The document is there and did not match: this batch is in it already, or another process made it just now.
    const isAdded = (await collection.findOne({ _id, tenantId, batches: batchId })) !== null;
    if (isAdded) return;
    if (triesLeft <= 1) throw new Error("a usage document is made and removed again and again");
    await addOne(batchId, increment, triesLeft - 1);
  };
  return {
    add: async (batchId, increments) => {
      await Promise.all(increments.map((increment) => addOne(batchId, increment)));
    },
    sum: async (tenantId, { from, to, groupBy }) => {
      const rows = await collection
        .aggregate<UsageCounters & { _id: string }>([
          { $match: ofTenant(tenantId, { day: { $gte: from, $lte: to } }) },
          {
            $group: {
              _id: `$${groupBy}`,
              requests: { $sum: "$requests" },
              errors: { $sum: "$errors" },
              inputTokens: { $sum: "$inputTokens" },
              outputTokens: { $sum: "$outputTokens" },
              costNanoUsd: { $sum: "$costNanoUsd" },
            },
          },
          { $sort: groupBy === "day" ? { _id: 1 } : { costNanoUsd: -1, requests: -1, _id: 1 } },
          { $limit: MAX_ROWS },
        ])
        .toArray();
      return rows.map(({ _id, ...counters }) => ({ group: _id, ...counters }));
    },
  };
}
