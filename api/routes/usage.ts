import { z } from "zod";
import { toUsd } from "../../src/gateway/money/prices.ts";
import type { UsageReport } from "../../src/gateway/money/usage-report.ts";
import { defined } from "../../src/lib/defined.ts";
import { invalidRequest } from "../../src/lib/errors.ts";
import { idSchema } from "../../src/lib/ids.ts";
import { percentilesOf } from "../../src/store/latency-buckets.ts";
import { type UsageGrouping, usageGroupings } from "../../src/store/usage-store.ts";
import { quotaNames } from "../../src/tenancy/quotas.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";

const DAY_MS = 24 * 3_600_000;
/** Days that are summed when the request names none, and most days of one query: there are many hours and many end users. */
const spans: Record<UsageGrouping, { usual: number; most: number }> = {
  model: { usual: 30, most: 366 },
  surface: { usual: 30, most: 366 },
  day: { usual: 30, most: 366 },
  key: { usual: 30, most: 366 },
  hour: { usual: 2, most: 7 },
  subject: { usual: 30, most: 31 },
};

/** Largest budget that can be set, in USD. */
const MAX_BUDGET_USD = 1_000_000;

const count = z.number().int().min(0);
const time = z.number().min(0);
const percentilesSchema = named("Percentiles", z.object({ p50: time, p95: time, p99: time }));
const countersSchema = z.object({
  requests: count,
  errors: count,
  inputTokens: count,
  outputTokens: count,
  costUsd: z.number().min(0),
  latencyMs: percentilesSchema
    .optional()
    .describe("Of calls that a provider completed, batches left out; to 13 %. Absent where none was timed"),
  firstTokenMs: percentilesSchema.optional().describe("The same to the first token, of streamed calls"),
});
const budgetSchema = z
  .object({
    month: z.string(),
    limitUsd: z.number(),
    leftUsd: z.number(),
    reservedUsd: z.number().describe("Set aside for calls under way"),
  })
  .nullable()
  .describe("What is left this month, in UTC; null where no budget is set");
const groupName = z.string().optional();
const usageSchema = named(
  "Usage",
  z.object({
    from: z.string(),
    to: z.string(),
    groupBy: z.enum(usageGroupings),
    data: z.array(
      countersSchema.extend({
        model: groupName,
        surface: groupName,
        day: groupName,
        hour: groupName.describe("As `2026-11-20T13`, in UTC"),
        key: groupName,
        subject: z.string().nullish().describe("Null: the calls that name none"),
      }),
    ),
    total: countersSchema.describe("Of all groups, also where `data` ends at 1,000"),
    budget: budgetSchema,
    quotas: z
      .record(z.enum(quotaNames), z.object({ used: count, limit: count }))
      .describe("How many of each the tenant keeps, counted up to the limit"),
    nextCursor: z.null(),
  }),
);

export const budgetRequestSchema = named(
  "PutBudgetRequest",
  z.strictObject({ limitUsd: z.number().min(0).max(MAX_BUDGET_USD).nullable() }),
);

const routes = declareRoutes({ auth: "member", tags: ["Gateway"], bodyLimit: "settings" });

export const usageRoutes = [
  routes.put("/budget", {
    isForAllCollections: true,
    auth: "owner",
    summary: "Set the limit that the tenant gives itself for a month",
    description:
      "It holds everywhere within 5 seconds, for all calls of the month, in UTC. The operator's limit holds beside it: the lower " +
      "of the two counts. `null` removes your own.",
    body: budgetRequestSchema,
    example: { limitUsd: 50 },
    responses: { 200: { description: "What holds now", body: z.object({ budget: budgetSchema }) } },
    async result({ body, caller: { tenantId }, platform: { gateway } }) {
      await gateway.setOwnBudget(tenantId, body.limitUsd);
      return { budget: await gateway.budget(tenantId) };
    },
  }),
  routes.get("/usage", {
    summary: "Usage and cost of the tenant's model calls, its budget and its quotas",
    description:
      "Sums by model, surface, API key, day, hour or subject, over days in UTC, both included. A subject is whom a call was made " +
      "for: its `safety_identifier`, or its `user`. A report has at most 1,000 rows, those that cost most. It covers 366 days at " +
      "most; by subject 31, by hour 7 of the last 32. A call is counted within 50 ms of its end.",
    query: z.strictObject({
      from: z.iso.date().optional().describe("First day; default: 30 days ago, by hour yesterday"),
      to: z.iso.date().optional().describe("Last day; default: today"),
      groupBy: z.enum(usageGroupings).default("day"),
      model: z.string().min(1).max(200).optional().describe("Only its calls"),
      surface: z.string().min(1).max(64).optional().describe("Only calls from there"),
      key: idSchema("apiKey").optional().describe("Only its calls"),
    }),
    responses: { 200: { description: "A row for each group, and the sum of all", body: usageSchema } },
    async result({ query, caller, platform }) {
      const { groupBy, model, surface, key: keyId } = query;
      const filter = defined({ model, surface, keyId });
      rejectFilter(groupBy, query);
      const span = toSpan(query);
      const [{ rows, total }, budget, quotas] = await Promise.all([
        platform.gateway.usage(caller.tenantId, { ...span, groupBy, filter }),
        platform.gateway.budget(caller.tenantId),
        platform.quotas.usage(caller.tenantId),
      ]);
      const data = rows.map(({ group, ...counters }) => ({ [groupBy]: group, ...toCounters(counters) }));
      return { ...span, groupBy, data, total: toCounters(total), budget, quotas, nextCursor: null };
    },
  }),
];

type SpanQuery = { from?: string | undefined; to?: string | undefined; groupBy: UsageGrouping };

/** The days that a query means. @throws AppError `invalid_request` for too many, or none. */
function toSpan({ groupBy, ...given }: SpanQuery): { from: string; to: string } {
  const { usual, most } = spans[groupBy];
  const now = Date.now();
  const to = given.to ?? toDay(now);
  const from = given.from ?? toDay(Math.min(now, Date.parse(to)) - (usual - 1) * DAY_MS);
  const days = (Date.parse(to) - Date.parse(from)) / DAY_MS + 1;
  if (days < 1) throw invalidRequest("from", "from must not be after to.");
  if (days > most) throw invalidRequest("from", `At most ${most} days can be summed by ${groupBy}.`);
  return { from, to };
}

/** @throws AppError `invalid_request`: what is counted by subject knows nothing else of a call. */
function rejectFilter(groupBy: UsageGrouping, query: { model?: unknown; surface?: unknown; key?: unknown }): void {
  if (groupBy !== "subject") return;
  const name = (["model", "surface", "key"] as const).find((one) => query[one] !== undefined);
  if (name !== undefined) throw invalidRequest(name, `Usage by subject cannot be limited to one ${name}.`);
}

const toDay = (at: number) => new Date(at).toISOString().slice(0, 10);

function toCounters({ costNanoUsd, times = {}, ...counts }: UsageReport["total"]): z.input<typeof countersSchema> {
  const latency = { latencyMs: percentilesOf(times, "ms"), firstTokenMs: percentilesOf(times, "firstMs") };
  return { ...counts, costUsd: toUsd(costNanoUsd), ...defined(latency) };
}
