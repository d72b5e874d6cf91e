import { z } from "zod";
import { AppError, notFound } from "../../src/lib/errors.ts";
import { idSchema } from "../../src/lib/ids.ts";
import { roles } from "../../src/store/key-store.ts";
import { mapPage } from "../../src/store/page.ts";
import { isTokenSubject } from "../../src/tenancy/access-tokens.ts";
import { toApiKeyView } from "../../src/tenancy/api-keys.ts";
import { listOf, pageQuery, wholeList, wholeListQuery } from "../list-query.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";
import { apiKeyListSchema, newApiKeySchema } from "./keys.ts";
import { budgetRequestSchema } from "./usage.ts";
import { showUsageSeries, usageSeriesSchema } from "./usage-series.ts";

const MAX_SHOWN_CALLBACKS = 100;
const DAY_MS = 86_400_000;
/** Days of a tenant's use that are shown. */
const USAGE_DAYS = 30;

const subject = z
  .string()
  .trim()
  .min(1)
  .max(200)
  .refine((text) => !isTokenSubject(text), "must not begin with `token:`, which subjects of access tokens do")
  .describe("Who acts by the key, as `ana@acme.io`");
const tenant = z.object({ tenantId: idSchema("tenant") });
const callbackSchema = named(
  "FailedCallback",
  z.object({
    callbackId: z.string(),
    tenantId: z.string(),
    host: z.string().describe("Of the address that does not take the message"),
    attempts: z.int().min(1),
    createdAt: z.iso.datetime(),
    nextAt: z.iso.datetime().describe("When it is tried again"),
  }),
);

const queueStateSchema = named("QueueState", z.strictObject({ isPaused: z.boolean() }));

const routes = declareRoutes({ auth: "operator", tags: ["Operator"], bodyLimit: "settings" });

export const operatorWriteRoutes = [
  routes.post("/operator/tenants", {
    summary: "Make a tenant with the key of its first owner",
    description: "The key is in this answer only.",
    body: z.strictObject({ name: z.string().trim().min(1).max(200), subject }),
    example: { name: "acme", subject: "ana@acme.io" },
    hasSecretReply: true,
    errors: ["wrong_state"],
    responses: {
      201: {
        description: "The tenant and its key",
        body: named("NewTenant", z.object({ tenantId: z.string(), name: z.string(), key: z.string() })),
      },
    },
    async result({ body, platform: { store, tenancy } }) {
      if (await store.tenants.findByName(body.name))
        throw new AppError("wrong_state", "There is a tenant of this name.");
      const tenantId = await tenancy.ensureTenant(body.name);
      const { key } = await tenancy.createKey({ tenantId, role: "owner", subject: body.subject });
      return { tenantId, name: body.name, key };
    },
  }),
  routes.put("/operator/tenants/:tenantId/budget", {
    summary: "Set the budget of a tenant for a month, in UTC",
    description: "It holds within 5 seconds, beside the limit that the tenant gives itself. `null` removes it.",
    params: tenant,
    body: budgetRequestSchema,
    example: { limitUsd: 50 },
    responses: { 200: { description: "What is set", body: budgetRequestSchema } },
    async result({ params: { tenantId }, body, platform: { gateway, tenancy } }) {
      await tenancy.nameOf(tenantId);
      await gateway.setBudget(tenantId, body.limitUsd);
      return body;
    },
  }),
  routes.get("/operator/tenants/:tenantId/usage", {
    summary: "A tenant's model calls of 30 days, by the day",
    params: tenant,
    responses: { 200: { description: "The series", body: usageSeriesSchema } },
    async result({ params: { tenantId }, platform: { gateway, tenancy } }) {
      await tenancy.nameOf(tenantId);
      const to = Date.now();
      return showUsageSeries(gateway, tenantId, { from: to - (USAGE_DAYS - 1) * DAY_MS, to, step: "day", filter: {} });
    },
  }),
  routes.get("/operator/tenants/:tenantId/keys", {
    summary: "API keys of a tenant, newest first",
    params: tenant,
    query: pageQuery("apiKey"),
    responses: { 200: { description: "A page of keys, by their previews", body: apiKeyListSchema } },
    result: async ({ params, query, platform: { tenancy } }) =>
      mapPage(await tenancy.listKeys(params.tenantId, query), toApiKeyView),
  }),
  routes.post("/operator/tenants/:tenantId/keys", {
    summary: "Make an API key of a tenant",
    description: "The key is in this answer only.",
    params: tenant,
    body: z.strictObject({ subject, role: z.enum(roles).default("member") }),
    example: { role: "owner", subject: "ana@acme.io" },
    hasSecretReply: true,
    errors: ["quota_exceeded"],
    responses: { 201: { description: "The new key", body: newApiKeySchema } },
    async result({ params: { tenantId }, body, platform: { quotas, tenancy } }) {
      await tenancy.nameOf(tenantId);
      await quotas.check(tenantId, "keys");
      const { key, record } = await tenancy.createKey({ tenantId, ...body });
      return { key, ...toApiKeyView(record) };
    },
  }),
  routes.delete("/operator/tenants/:tenantId/keys/:keyId", {
    summary: "Revoke an API key of a tenant",
    description: "It is refused everywhere within 5 seconds. The last owner's key of a tenant cannot be revoked (409).",
    params: tenant.extend({ keyId: idSchema("apiKey") }),
    responses: { 204: { description: "It was revoked" } },
    errors: ["wrong_state"],
    result: ({ params: { tenantId, keyId }, platform: { tenancy } }) => tenancy.revokeKey(tenantId, keyId),
  }),
  routes.put("/operator/queues/:queue", {
    summary: "Pause a queue, or let it go on",
    description: "No worker takes a job of a paused queue; those that run go on. Jobs are still accepted, and wait.",
    params: z.object({ queue: z.string().min(1).max(100) }),
    body: queueStateSchema,
    example: { isPaused: true },
    responses: { 200: { description: "Its state", body: queueStateSchema } },
    async result({ params, body, platform: { queues } }) {
      const queue = queues.instances().find(({ name }) => name === params.queue);
      if (queue === undefined) throw notFound("queue");
      await (body.isPaused ? queue.pause() : queue.resume());
      return body;
    },
  }),
  routes.get("/operator/callbacks", {
    summary: "Callbacks that could not be delivered yet, the next attempt first",
    description: "At most 100 of those that are due first.",
    query: wholeListQuery,
    responses: { 200: { description: "The callbacks", body: listOf(callbackSchema) } },
    async result({ platform: { store } }) {
      const failed = await store.callbacks.failed(MAX_SHOWN_CALLBACKS);
      return wholeList(
        failed.map(({ _id, tenantId, url, attempts = 1, createdAt, nextAt }) => ({
          callbackId: _id,
          tenantId,
          host: new URL(url).host,
          attempts,
          createdAt: createdAt.toISOString(),
          nextAt: nextAt.toISOString(),
        })),
      );
    },
  }),
];
