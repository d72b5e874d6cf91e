import { z } from "zod";
import type { ModelEntry } from "../../../src/gateway/model-schemas.ts";
import { notFound } from "../../../src/lib/errors.ts";
import type { RunModel } from "../../../src/run-models/list.ts";
import { declareRoutes, type HandlerInput } from "../../route.ts";
import { named } from "../../schema-names.ts";
import { anthropicDialect } from "../anthropic/errors.ts";
import { betaQuery } from "../anthropic/messages.ts";
import {
  anthropicModelSchema,
  anthropicModelsSchema,
  toAnthropicModel,
  toAnthropicModels,
} from "../anthropic/models.ts";
import { openAiListOf } from "./lists.ts";

const modelSchema = z.object({
  id: z.string(),
  object: z.literal("model"),
  created: z.number().int().min(0).describe("When the catalogue's entry or the agent was made, in seconds since 1970"),
  owned_by: z.string(),
});

const routes = declareRoutes({ auth: "member", tags: ["OpenAI-compatible"] });

/** The header by which Anthropic's clients are known. */
const ANTHROPIC_VERSION = "anthropic-version";
const shared = {
  headers: { [ANTHROPIC_VERSION]: "The response has Anthropic's shape" },
  dialectOf: (header: HandlerInput["header"]) =>
    header(ANTHROPIC_VERSION) === undefined ? undefined : anthropicDialect,
};

export const openAiModelRoutes = [
  routes.get("/v1/models", {
    summary: "The models that your calls can use, as OpenAI lists them",
    ...shared,
    description:
      "Besides models, the tenant's newest 100 agents as `agent:<name>` (by their ids where several have a name) and the " +
      "composite patterns, unless `anthropic-version` is sent.",
    query: betaQuery.strict().extend({
      limit: z.string().optional().describe("As Anthropic's clients send it; the list is one page"),
    }),
    responses: {
      200: {
        description: "The models",
        body: z.union([openAiListOf(modelSchema, {}).omit({ has_more: true }), anthropicModelsSchema]),
      },
    },
    async result({ caller, platform, header }) {
      const models = await platform.gateway.models(caller.tenantId, { available: "true" });
      if (header(ANTHROPIC_VERSION) !== undefined) return toAnthropicModels(models);
      const runs = await platform.chat.listRuns(caller.tenantId);
      return { object: "list", data: [...models.map(toModel), ...runs.map(toRunModel)] };
    },
  }),
  routes.get("/v1/models/:model", {
    summary: "One model, by its id or an alias of it; or an agent or a composite pattern",
    params: z.object({ model: z.string().min(1).max(200) }),
    ...shared,
    responses: {
      200: { description: "The model", body: z.union([named("OpenAiModel", modelSchema), anthropicModelSchema]) },
    },
    async result({ params, caller, platform, header }) {
      const isAnthropic = header(ANTHROPIC_VERSION) !== undefined;
      const model = await platform.gateway.findModel(caller.tenantId, params.model);
      if (model !== undefined) return isAnthropic ? toAnthropicModel(model) : toModel(model);
      const run = isAnthropic ? undefined : await platform.chat.findRun(caller.tenantId, params.model);
      if (run === undefined) throw notFound("model");
      return toRunModel(run);
    },
  }),
];

function toModel({ id, provider, priceDate }: ModelEntry): z.output<typeof modelSchema> {
  return { id, object: "model", created: toSeconds(priceDate), owned_by: provider };
}

function toRunModel({ id, ownedBy, createdAt }: RunModel): z.output<typeof modelSchema> {
  return { id, object: "model", created: toSeconds(createdAt), owned_by: ownedBy };
}

const toSeconds = (date: string | undefined) => (date === undefined ? 0 : Math.floor(Date.parse(date) / 1_000));
