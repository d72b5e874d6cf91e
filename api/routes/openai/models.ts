import { z } from "zod";
import { notFound } from "../../../src/errors.ts";
import type { ModelEntry } from "../../../src/gateway/schemas.ts";
import { declareRoutes } from "../../route.ts";
import { named } from "../../schema-names.ts";
import { openAiListOf } from "./lists.ts";

const modelSchema = z.object({
  id: z.string(),
  object: z.literal("model"),
  created: z.number().int().min(0).describe("When the catalogue's entry was made, in seconds since 1970"),
  owned_by: z.string(),
});

const routes = declareRoutes({ auth: "member", tags: ["OpenAI-compatible"] });

export const openAiModelRoutes = [
  routes.get("/v1/models", {
    summary: "The models that your calls can use, as OpenAI lists them",
    responses: { 200: { description: "The models", body: openAiListOf(modelSchema, {}).omit({ has_more: true }) } },
    async result({ caller, platform }) {
      const models = await platform.gateway.models(caller.tenantId, { available: "true" });
      return { object: "list", data: models.map(toModel) };
    },
  }),
  routes.get("/v1/models/:model", {
    summary: "One model, by its id or an alias of it",
    params: z.object({ model: z.string().min(1).max(200) }),
    responses: { 200: { description: "The model", body: named("OpenAiModel", modelSchema) } },
    async result({ params, caller, platform }) {
      const model = await platform.gateway.findModel(caller.tenantId, params.model);
      if (model === undefined) throw notFound("model");
      return toModel(model);
    },
  }),
];

function toModel({ id, provider, priceDate }: ModelEntry): z.output<typeof modelSchema> {
  const created = priceDate === undefined ? 0 : Math.floor(Date.parse(priceDate) / 1_000);
  return { id, object: "model", created, owned_by: provider };
}
