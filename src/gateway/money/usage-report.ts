import type { BucketCounts } from "../../store/latency-buckets.ts";
import {
  MAX_USAGE_ROWS,
  type UsageFilter,
  type UsageGrouping,
  type UsageRow,
  type UsageSpan,
  type UsageStore,
  usageCounters,
} from "../../store/usage-store.ts";

export type UsageQuery = UsageSpan & { groupBy: UsageGrouping; filter?: UsageFilter };
type Summed = Omit<UsageRow, "group">;
/** `group` is null for the calls that name no end user. */
export type UsageReport = { rows: (Summed & { group: string | null })[]; total: Summed };

/** What a tenant's calls came to: a row for each group, at most 1,000, and the sum of all. */
export async function reportUsage(
  usage: Pick<UsageStore, "sum">,
  tenantId: string,
  query: UsageQuery,
): Promise<UsageReport> {
  const rows = await usage.sum(tenantId, query);
  const isWhole = rows.length < MAX_USAGE_ROWS && query.groupBy !== "subject";
  if (isWhole) return { rows, total: sumOf(rows) };
  const total = sumOf(await usage.sum(tenantId, { ...query, groupBy: "day" }));
  if (query.groupBy !== "subject" || rows.length === MAX_USAGE_ROWS) return { rows, total };
  const unnamed = { group: null, ...difference(total, sumOf(rows)) };
  return { rows: unnamed.requests === 0 ? rows : [...rows, unnamed], total };
}

const nothing = { requests: 0, errors: 0, inputTokens: 0, outputTokens: 0, costNanoUsd: 0 };

function sumOf(rows: readonly Summed[]): Summed {
  return rows.reduce((sum, row) => combine(sum, row, 1), nothing);
}

/** What is left of a sum. The two are counted one after the other, so that a part may be ahead of the whole. */
const difference = (whole: Summed, part: Summed): Summed => combine(whole, part, -1);

function combine(a: Summed, b: Summed, sign: 1 | -1): Summed {
  const add = (x = 0, y = 0) => Math.max(0, x + sign * y);
  const sum = { ...a };
  for (const name of usageCounters) sum[name] = add(a[name], b[name]);
  if (a.times === undefined && b.times === undefined) return sum;
  const times: BucketCounts = { ...a.times };
  for (const [name, count] of Object.entries(b.times ?? {})) times[name] = add(times[name], count);
  return { ...sum, times };
}
