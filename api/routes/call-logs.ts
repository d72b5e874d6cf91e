import { z } from "zod";
import { toUsd } from "../../src/gateway/money/prices.ts";
import { guardCountsSchema } from "../../src/guards/rules.ts";
import { defined, toView } from "../../src/lib/defined.ts";
import { notFound } from "../../src/lib/errors.ts";
import { idSchema } from "../../src/lib/ids.ts";
import type { CompletionRecord, ShownCompletion } from "../../src/store/completion-store.ts";
import { mapPage } from "../../src/store/page.ts";
import { maySee, ownKeyOf } from "../../src/tenancy/roles.ts";
import { filterQuery, listOf, pageQuery } from "../list-query.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";

const count = z.number().int().min(0);
const outcomes = ["completed", "aborted", "failed", "blocked"] as const;
const callKinds = ["chat", "embedding", "rerank"] as const;

const logSchema = named(
  "CallLog",
  z.object({
    logId: z.string(),
    kind: z.enum(callKinds),
    surface: z.string(),
    requestId: z
      .string()
      .optional()
      .describe("The `x-request-id` of the request that the call answers, or that submitted its job"),
    jobId: z.string().optional().describe("The job that made the call"),
    runId: z.string().optional().describe("The run of an agent, a workflow or a composite pattern"),
    agentId: z.string().optional(),
    workflowId: z.string().optional(),
    endUser: z.string().optional().describe("Whom the call was made for: its `safety_identifier`, or its `user`"),
    keyId: z.string(),
    requestedModel: z.string(),
    model: z.string(),
    provider: z.string(),
    stream: z.boolean(),
    status: z.enum(outcomes),
    finishReason: z.string().optional(),
    error: z.object({ type: z.string(), code: z.string(), message: z.string() }).loose().optional(),
    inputTokens: count,
    outputTokens: count,
    usageSource: z.enum(["provider", "estimate"]),
    costUsd: z.number().min(0),
    cached: z.boolean(),
    attempts: count,
    durationMs: z.number(),
    firstTokenMs: z.number().optional(),
    createdAt: z.iso.datetime(),
    guard: guardCountsSchema.optional(),
    content: z.object({ messages: z.array(z.unknown()), text: z.string() }).optional(),
  }),
);

const logSummarySchema = named("CallLogSummary", logSchema.omit({ content: true }));

const logsQuery = pageQuery("log").extend({
  status: z.enum(outcomes).optional(),
  kind: z.enum(callKinds).optional(),
  model: z.string().max(200).optional(),
  provider: z.string().max(100).optional(),
  surface: z.string().max(64).optional(),
  keyId: idSchema("apiKey").optional(),
  requestId: z.string().max(128).optional(),
  jobId: idSchema("job").optional(),
  runId: z.string().max(64).optional().describe("A run of an agent, a workflow or a composite pattern"),
  endUser: z.string().max(512).optional().describe("Whom the call was made for"),
  ...filterQuery,
});

const routes = declareRoutes({ auth: "member", tags: ["Gateway"] });

export const callLogRoutes = [
  routes.get("/ai/logs", {
    summary: "Model calls of the tenant, newest first",
    description:
      "Each without its texts, which `/ai/logs/:logId` shows where they are kept. A page looks at 5,000 calls at most: with " +
      "filters it may have few items, or none, and still a `nextCursor`.",
    query: logsQuery,
    responses: { 200: { description: "A page of calls", body: listOf(logSummarySchema) } },
    async result({ query: { limit, cursor, status: outcome, ...fields }, caller, platform }) {
      const own = ownKeyOf(caller);
      if (own !== undefined && (fields.keyId ?? own) !== own) return { data: [], nextCursor: null };
      const filter = defined({ ...fields, outcome, keyId: own ?? fields.keyId });
      return mapPage(await platform.gateway.logs(caller.tenantId, filter, { limit, cursor }), toLogView);
    },
  }),
  routes.get("/ai/logs/:logId", {
    summary: "The record of one model call",
    description:
      "Texts are in it only if the tenant keeps them (`PUT /settings`), or, without a choice of its own, the operator " +
      "(`STORE_COMPLETION_CONTENT`).",
    params: z.object({ logId: idSchema("log") }),
    responses: { 200: { description: "The record", body: logSchema } },
    async result({ params, caller, platform }) {
      const record = await platform.gateway.log(caller.tenantId, params.logId);
      if (!maySee(caller, record.keyId)) throw notFound("log");
      return toLogView(record);
    },
  }),
];

function toLogView(record: ShownCompletion & Partial<CompletionRecord>): z.input<typeof logSchema> {
  const { _id, tenantId: _tenant, isStreamed, outcome, error, costNanoUsd, isCached, createdAt, ...rest } = record;
  const about = { stream: isStreamed, status: outcome, error, costUsd: toUsd(costNanoUsd), cached: isCached };
  return toView({ logId: _id, ...rest, ...about, createdAt });
}
