import { z } from "zod";
import type { Gateway } from "../../src/gateway/gateway.ts";
import { toUsd } from "../../src/gateway/money/prices.ts";
import type { UsagePoint, UsageSeriesQuery, UsageStep } from "../../src/gateway/money/usage-series.ts";
import { defined } from "../../src/lib/defined.ts";
import { invalidRequest } from "../../src/lib/errors.ts";
import { idSchema } from "../../src/lib/ids.ts";
import { type Measure, type Percentiles, percentilesOf } from "../../src/store/latency-buckets.ts";
import { usageDivisions } from "../../src/store/usage-series.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The longest span of each step, which bounds the points of a response. */
const longest: Record<UsageStep, number> = { minute: 3 * HOUR_MS, hour: 8 * DAY_MS, day: 366 * DAY_MS };
const steps = ["minute", "hour", "day"] as const;

const count = z.number().int().min(0);
const times = z.array(z.number().min(0).nullable());
const percentilesSchema = z.object({ p50: times, p95: times, p99: times });
const countersSchema = z.object({
  requests: z.array(count),
  errors: z.array(count),
  inputTokens: z.array(count),
  outputTokens: z.array(count),
  costUsd: z.array(z.number().min(0)),
});
export const usageSeriesSchema = named(
  "UsageSeries",
  z.object({
    from: z.iso.datetime(),
    to: z.iso.datetime(),
    step: z.enum(steps),
    times: z.array(z.iso.datetime()).describe("When each point begins. All other lists have a value for each"),
    total: countersSchema.extend({
      latencyMs: percentilesSchema.describe("Null at times without a call that was timed"),
      firstTokenMs: percentilesSchema.describe("The same to the first token, of streamed calls"),
    }),
    series: z
      .array(countersSchema.extend({ name: z.string().nullable().describe("Null: all others") }))
      .describe("The eight names that cost most, and all others as one; empty without `by`"),
    isWhole: z
      .boolean()
      .describe(
        "False if the span has more than 20,000 calls to count by the minute: its earlier minutes are then missing",
      ),
  }),
);

const time = z.iso
  .datetime({ offset: true })
  .transform((text) => Date.parse(text))
  .optional();

export const usageSeriesRoutes = [
  declareRoutes({ auth: "member", tags: ["Gateway"] }).get("/usage/series", {
    summary: "Usage and cost of the tenant's model calls over time, for charts",
    description:
      "A value for each minute, hour or day in UTC, those without a call too. A span has at most 3 hours by the minute, 8 days by " +
      "the hour and 366 days by the day; hours are kept for 32 days. Minutes are counted from the call logs, as long as these " +
      "are kept.",
    query: z.strictObject({
      from: time.describe("Default: 24 hours before `to`"),
      to: time.describe("Default: now"),
      step: z.enum(steps).optional().describe("Default: the shortest that the span may have"),
      by: z.enum(usageDivisions).optional().describe("What the calls are divided by"),
      model: z.string().min(1).max(200).optional().describe("Only its calls"),
      surface: z.string().min(1).max(64).optional().describe("Only calls from there"),
      key: idSchema("apiKey").optional().describe("Only its calls"),
    }),
    responses: { 200: { description: "The series", body: usageSeriesSchema } },
    async result({ query, caller, platform }) {
      const { by, model, surface, key: keyId } = query;
      const span = toSpan(query);
      const asked = { ...span, ...defined({ by }), filter: defined({ model, surface, keyId }) };
      return showUsageSeries(platform.gateway, caller.tenantId, asked);
    },
  }),
];

/** What a tenant's calls came to over time, as clients see it. */
export async function showUsageSeries(
  gateway: Gateway,
  tenantId: string,
  asked: UsageSeriesQuery,
): Promise<z.input<typeof usageSeriesSchema>> {
  const { starts, total, series, isWhole } = await gateway.usageSeries(tenantId, asked);
  return {
    from: new Date(asked.from).toISOString(),
    to: new Date(asked.to).toISOString(),
    step: asked.step,
    times: starts.map((start) => new Date(start).toISOString()),
    total: {
      ...toCounters(total),
      latencyMs: toPercentiles(total, "ms"),
      firstTokenMs: toPercentiles(total, "firstMs"),
    },
    series: series.map(({ name, points }) => ({ name, ...toCounters(points) })),
    isWhole,
  };
}

type SpanQuery = { from?: number | undefined; to?: number | undefined; step?: UsageStep | undefined };

/** The span that a query means. @throws AppError `invalid_request` for one that is too long, or has no time in it. */
function toSpan({ from: givenFrom, to = Date.now(), step: wanted }: SpanQuery) {
  const from = givenFrom ?? to - DAY_MS;
  if (from >= to) throw invalidRequest("from", "from must be before to.");
  const length = to - from;
  const step = wanted ?? steps.find((one) => length <= longest[one]);
  if (step === undefined || length > longest[step]) {
    const unit = step ?? "day";
    throw invalidRequest("from", `At most ${longest[unit] / HOUR_MS} hours can be shown by the ${unit}.`);
  }
  return { from, to, step };
}

function toCounters(points: readonly UsagePoint[]): z.input<typeof countersSchema> {
  return {
    requests: points.map(({ requests }) => requests),
    errors: points.map(({ errors }) => errors),
    inputTokens: points.map(({ inputTokens }) => inputTokens),
    outputTokens: points.map(({ outputTokens }) => outputTokens),
    costUsd: points.map(({ costNanoUsd }) => toUsd(costNanoUsd)),
  };
}

function toPercentiles(points: readonly UsagePoint[], measure: Measure): z.input<typeof percentilesSchema> {
  const found = points.map((point) => percentilesOf(point.times, measure));
  const of = (name: keyof Percentiles) => found.map((one) => one?.[name] ?? null);
  return { p50: of("p50"), p95: of("p95"), p99: of("p99") };
}
