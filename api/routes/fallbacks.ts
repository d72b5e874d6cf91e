import { z } from "zod";
import { declareRoutes } from "../route.ts";
import { named } from "../schema-names.ts";

const MAX_ENTRIES = 100;
const MAX_MODELS = 5;

const model = z.string().min(1).max(200);
const fallbacksSchema = named(
  "Fallbacks",
  z.object({
    fallbacks: z
      .array(
        z.object({
          model: model.describe("The model that may fail"),
          models: z.array(model).min(1).max(MAX_MODELS).describe("Those that respond in its place, in order"),
        }),
      )
      .max(MAX_ENTRIES),
  }),
);

const description =
  "When a named model fails before its first token, or its provider keeps failing, these respond in its place; the response's " +
  "`model` says which one did. Models that have no key, or do not support the request, are skipped.";

const routes = declareRoutes({ auth: "member", tags: ["Gateway"] });

export const fallbackRoutes = [
  routes.get("/ai/fallbacks", {
    summary: "The models that respond in place of those that fail",
    description,
    responses: { 200: { description: "Your tenant's fallbacks", body: fallbacksSchema } },
    result: async ({ caller, platform }) => ({ fallbacks: await platform.fallbacks.find(caller.tenantId) }),
  }),
  routes.put("/ai/fallbacks", {
    auth: "admin",
    summary: "Set the models that respond in place of those that fail",
    description: `${description} Replaces all earlier ones, everywhere within 5 seconds.`,
    body: fallbacksSchema,
    responses: { 200: { description: "The fallbacks are set", body: fallbacksSchema } },
    errors: ["unknown_model"],
    example: { fallbacks: [{ model: "claude-opus-5-5", models: ["gpt-5.6-sol"] }] },
    async result({ body, caller, platform }) {
      platform.gateway.checkFallbacks(body.fallbacks);
      await platform.fallbacks.put(caller.tenantId, body.fallbacks);
      return body;
    },
  }),
];
