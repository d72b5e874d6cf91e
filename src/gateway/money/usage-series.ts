import { defined } from "../../lib/defined.ts";
import type { CompletionStore, ShownCompletion } from "../../store/completion-store.ts";
import { type BucketCounts, bucketFields } from "../../store/latency-buckets.ts";
import type { DividedRow, SeriesRow, UsageDivision, UsageSeriesStore } from "../../store/usage-series.ts";
import { type UsageCounters, type UsageFilter, type UsageStore, usageCounters } from "../../store/usage-store.ts";
import { addCall } from "./usage-increments.ts";
import { reportUsage, type UsageQuery } from "./usage-report.ts";

/** Names that have a series of their own, those that cost most. All others share one. */
const MAX_NAMES = 8;
/** Call logs that the minutes of a span are counted from, those of its end, and how many are read at once. */
const MAX_CALLS = 20_000;
const CALLS_PAGE = 1_000;

const stepMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;
export type UsageStep = keyof typeof stepMs;
/** How much of a time's text in ISO form names its minute, hour or day. */
const lengthOf = { minute: 16, hour: 13, day: 10 } as const;

/** `from` is included, `to` is not; both are in ms. */
export type UsageSeriesQuery = {
  from: number;
  to: number;
  step: UsageStep;
  by?: UsageDivision;
  filter: UsageFilter;
};
/** What the calls of one time came to, those of no time with zeros. */
export type UsagePoint = UsageCounters & { times: BucketCounts };
/** A point for each time. `name` is null for all that have no series of their own. */
export type UsageSeries = {
  /** When each point begins, in ms. */
  starts: number[];
  total: UsagePoint[];
  series: { name: string | null; points: UsagePoint[] }[];
  /** False if there were too many calls to count by the minute: the earlier minutes are then missing. */
  isWhole: boolean;
};
type SeriesStore = { usageSeries: UsageSeriesStore; completions: Pick<CompletionStore, "list"> };
type Found = { total: SeriesRow[]; divided: DividedRow[]; isWhole: boolean };

/** What a tenant's calls came to: in sum, and over time. */
export const makeUsageReports = (store: SeriesStore & { usage: Pick<UsageStore, "sum"> }) => ({
  /** See `reportUsage`. */
  usage: (tenantId: string, query: UsageQuery) => reportUsage(store.usage, tenantId, query),
  /** See `readUsageSeries`. */
  usageSeries: (tenantId: string, query: UsageSeriesQuery) => readUsageSeries(store, tenantId, query),
});

/** What a tenant's calls came to over time: by the day and the hour as usage counts them, by the minute from their logs. */
async function readUsageSeries(store: SeriesStore, tenantId: string, query: UsageSeriesQuery): Promise<UsageSeries> {
  const starts = startsOf(query);
  const found =
    query.step === "minute"
      ? await countCalls(store.completions, tenantId, query)
      : await readCounters(store.usageSeries, tenantId, { ...query, step: query.step });
  const keys = starts.map((start) => keyOf(start, query.step));
  const total = toPoints(found.total, keys);
  const byName = Map.groupBy(found.divided, ({ name }) => name);
  const series: UsageSeries["series"] = [...byName].map(([name, rows]) => ({ name, points: toPoints(rows, keys) }));
  const others = total.map((point, at) => difference(point, series, at));
  if (query.by !== undefined && others.some(({ requests }) => requests > 0))
    series.push({ name: null, points: others });
  return { starts, total, series, isWhole: found.isWhole };
}

const keyOf = (at: number, step: UsageStep) => new Date(at).toISOString().slice(0, lengthOf[step]);

/** When each time of a span begins: a span may begin and end within one. */
function startsOf({ from, to, step }: UsageSeriesQuery): number[] {
  const first = Math.floor(from / stepMs[step]) * stepMs[step];
  const count = Math.max(1, Math.ceil((to - first) / stepMs[step]));
  return Array.from({ length: count }, (_, at) => first + at * stepMs[step]);
}

async function readCounters(
  usage: UsageSeriesStore,
  tenantId: string,
  { from, to, by, step, filter }: UsageSeriesQuery & { step: "hour" | "day" },
): Promise<Found> {
  const span = { step, from: keyOf(from, step), to: keyOf(Math.max(from, to - 1), step), filter };
  const [total, divided] = await Promise.all([
    usage.totals(tenantId, span),
    by === undefined ? [] : usage.divided(tenantId, { ...span, by, most: MAX_NAMES }),
  ]);
  return { total, divided, isWhole: true };
}

async function countCalls(
  completions: Pick<CompletionStore, "list">,
  tenantId: string,
  { from, to, by, filter }: UsageSeriesQuery,
): Promise<Found> {
  const calls: ShownCompletion[] = [];
  const wanted = {
    ...filter,
    from: new Date(startsOf({ from, to, step: "minute", filter })[0] ?? from),
    to: new Date(to),
  };
  let cursor: string | undefined;
  let isWhole = true;
  for (let read = 0; read < MAX_CALLS; read += CALLS_PAGE) {
    const page = await completions.list(tenantId, wanted, { limit: CALLS_PAGE, ...defined({ cursor }) });
    calls.push(...page.data);
    isWhole = page.nextCursor === null;
    if (isWhole) break;
    cursor = page.nextCursor ?? undefined;
  }
  const atOf = ({ createdAt }: ShownCompletion) => keyOf(createdAt.getTime(), "minute");
  const total = [...Map.groupBy(calls, atOf)].map(([at, those]) => ({ at, counts: sumCalls(those) }));
  if (by === undefined) return { total, divided: [], isWhole };
  const field = by === "key" ? "keyId" : by;
  const names = [...Map.groupBy(calls, (call) => call[field])]
    .map(([name, those]) => ({ name, those, cost: sumCalls(those).costNanoUsd }))
    .toSorted((a, b) => b.cost - a.cost || b.those.length - a.those.length)
    .slice(0, MAX_NAMES);
  const divided = names.flatMap(({ name, those }) =>
    [...Map.groupBy(those, atOf)].map(([at, some]) => ({ at, name, counts: sumCalls(some) })),
  );
  return { total, divided, isWhole };
}

const nothing = { requests: 0, errors: 0, inputTokens: 0, outputTokens: 0, costNanoUsd: 0 };

function sumCalls(calls: readonly ShownCompletion[]): SeriesRow["counts"] {
  const sum = { ...nothing, times: {} };
  for (const call of calls) addCall(sum, call);
  const { times, ...counters } = sum;
  return { ...counters, ...times };
}

function toPoints(rows: readonly SeriesRow[], keys: readonly string[]): UsagePoint[] {
  const byKey = new Map(rows.map(({ at, counts }) => [at, counts]));
  return keys.map((key) => {
    const counts: Record<string, number> = byKey.get(key) ?? {};
    const times = bucketFields.filter((name) => (counts[name] ?? 0) > 0).map((name) => [name, counts[name] ?? 0]);
    const point = { ...nothing, times: Object.fromEntries(times) };
    for (const name of usageCounters) point[name] = counts[name] ?? 0;
    return point;
  });
}

/** What a time has beside the named series. The two are counted one after the other, so that a part may be ahead of the whole. */
function difference(point: UsagePoint, series: UsageSeries["series"], at: number): UsagePoint {
  const rest = { ...point, times: {} };
  for (const name of usageCounters) {
    const named = series.reduce((sum, { points }) => sum + (points[at]?.[name] ?? 0), 0);
    rest[name] = Math.max(0, point[name] - named);
  }
  return rest;
}
