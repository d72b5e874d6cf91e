import { createHash } from "node:crypto";
import { z } from "zod";
import { listedModelSchema, modelQuerySchema } from "../../src/gateway/model-schemas.ts";
import { totalHeader, wholeListQuery } from "../list-query.ts";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";

/** How long clients may keep the list, in seconds. */
const MAX_AGE_SECONDS = 300;
const MAX_FALLBACKS = 100;
/** Models that may respond in the place of one. */
const MAX_MODELS = 5;

const model = z.string().min(1).max(200);
const fallbacksSchema = named(
  "Fallbacks",
  z.strictObject({
    fallbacks: z
      .array(
        z.strictObject({
          model: model.describe("The model that may fail"),
          models: z.array(model).min(1).max(MAX_MODELS).describe("Those that respond in its place, in order"),
        }),
      )
      .max(MAX_FALLBACKS),
  }),
);

const aboutFallbacks =
  "When a named model fails before its first token, or its provider keeps failing, these respond in its place; the response's " +
  "`model` says which one did. Models that have no key, or do not support the request, are skipped.";

const routes = declareRoutes({ auth: "member", tags: ["Gateway"] });

export const modelRoutes = [
  routes.get("/ai/models", {
    summary: "Models with their prices",
    description: "May be kept for 5 minutes; afterwards ask with `If-None-Match`.",
    query: modelQuerySchema,
    headers: { "if-none-match": "The `ETag` of the list that you have" },
    responses: {
      200: { description: "The models", body: z.object({ models: z.array(listedModelSchema) }), headers: totalHeader },
      304: { description: "The list that you have is current" },
    },
    async handler({ query, caller, platform, header }) {
      const models = await platform.gateway.models(caller.tenantId, query);
      const etag = etagOf(JSON.stringify(models));
      const headers = { "cache-control": `private, max-age=${MAX_AGE_SECONDS}`, etag };
      if (isNamed(header("if-none-match"), etag)) return { status: 304, headers };
      return { status: 200, headers: { ...headers, "x-total-count": String(models.length) }, body: { models } };
    },
  }),
  routes.get("/ai/fallbacks", {
    summary: "The models that respond in place of those that fail",
    description: aboutFallbacks,
    query: wholeListQuery,
    responses: { 200: { description: "Your tenant's fallbacks", body: fallbacksSchema } },
    result: async ({ caller, platform }) => ({ fallbacks: await platform.fallbacks.find(caller.tenantId) }),
  }),
  routes.put("/ai/fallbacks", {
    isForAllCollections: true,
    bodyLimit: "settings",
    auth: "admin",
    summary: "Set the models that respond in place of those that fail",
    description: `${aboutFallbacks} Replaces all earlier ones, everywhere within 5 seconds.`,
    body: fallbacksSchema,
    responses: { 200: { description: "The fallbacks are set", body: fallbacksSchema } },
    errors: ["unknown_model"],
    example: { fallbacks: [{ model: "claude-opus-5-5", models: ["gpt-5.6-sol"] }] },
    async result({ body, caller, platform }) {
      await platform.gateway.checkFallbacks(caller.tenantId, body.fallbacks);
      await platform.fallbacks.put(caller.tenantId, body.fallbacks);
      return body;
    },
  }),
];

export const etagOf = (text: string) => `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"`;

/** Whether `If-None-Match` names the tag; weak tags compare equal (RFC 9110, 13.1.2). */
export function isNamed(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === etag);
}
