import { z } from "zod";
import { invalidRequest } from "../../src/errors.ts";
import { toUsd } from "../../src/gateway/money/prices.ts";
import { type UsageRow, usageGroupings } from "../../src/store/usage-store.ts";
import { quotaNames } from "../../src/tenancy/quotas.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";

const DAY_MS = 24 * 3_600_000;
/** Days that are summed when the request names none. */
const DEFAULT_DAYS = 30;
/** Most days of one query. */
const MAX_DAYS = 366;

/** Largest budget that can be set, in USD. */
const MAX_BUDGET_USD = 1_000_000;

const count = z.number().int().min(0);
const countersSchema = z.object({
  requests: count,
  errors: count,
  inputTokens: count,
  outputTokens: count,
  costUsd: z.number().min(0),
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
    data: z.array(countersSchema.extend({ model: groupName, surface: groupName, day: groupName, key: groupName })),
    total: countersSchema,
    budget: budgetSchema,
    quotas: z
      .record(z.enum(quotaNames), z.object({ used: count, limit: count }))
      .describe("How many of each the tenant keeps, counted up to the limit"),
    nextCursor: z.null(),
  }),
);

const routes = declareRoutes({ auth: "member", tags: ["Gateway"] });

export const usageRoutes = [
  routes.put("/budget", {
    auth: "owner",
    summary: "Set the limit that the tenant gives itself for a month",
    description:
      "It holds everywhere within 5 seconds, for all calls of the month, in UTC. The operator's limit holds beside it: the lower " +
      "of the two counts. `null` removes your own.",
    body: z.object({ limitUsd: z.number().min(0).max(MAX_BUDGET_USD).nullable() }),
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
      "Sums by model, surface, day or API key, over days in UTC, both included. A call is counted within 50 ms of its end.",
    query: z.object({
      from: z.iso.date().optional().describe("First day; default: 30 days ago"),
      to: z.iso.date().optional().describe("Last day; default: today"),
      groupBy: z.enum(usageGroupings).default("day"),
    }),
    responses: { 200: { description: "A row for each group, and the sum of all", body: usageSchema } },
    async result({ query, caller, platform }) {
      const { groupBy } = query;
      const now = Date.now();
      const to = query.to ?? toDay(now);
      const from = query.from ?? toDay(Math.min(now, Date.parse(to)) - (DEFAULT_DAYS - 1) * DAY_MS);
      const days = (Date.parse(to) - Date.parse(from)) / DAY_MS + 1;
      if (days < 1) throw invalidRequest("from", "from must not be after to.");
      if (days > MAX_DAYS) throw invalidRequest("from", `At most ${MAX_DAYS} days can be summed.`);
      const [rows, budget, quotas] = await Promise.all([
        platform.gateway.usage(caller.tenantId, { from, to, groupBy }),
        platform.gateway.budget(caller.tenantId),
        platform.quotas.usage(caller.tenantId),
      ]);
      const data = rows.map(({ group, ...counters }) => ({ [groupBy]: group, ...toCounters(counters) }));
      return { from, to, groupBy, data, total: toCounters(sumOf(rows)), budget, quotas, nextCursor: null };
    },
  }),
];

const toDay = (time: number) => new Date(time).toISOString().slice(0, 10);

type Counters = Omit<UsageRow, "group">;
const counterNames = ["requests", "errors", "inputTokens", "outputTokens", "costNanoUsd"] as const;

function sumOf(rows: readonly Counters[]): Counters {
  const sum = { requests: 0, errors: 0, inputTokens: 0, outputTokens: 0, costNanoUsd: 0 };
  for (const row of rows) for (const name of counterNames) sum[name] += row[name];
  return sum;
}

function toCounters({ costNanoUsd, ...counts }: Counters): z.input<typeof countersSchema> {
  return { ...counts, costUsd: toUsd(costNanoUsd) };
}
