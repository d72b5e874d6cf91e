import { z } from "zod";
import type { ModelEntry } from "../../../src/gateway/model-schemas.ts";
import { named } from "../../schema-names.ts";

/** A model as Anthropic lists it: https://platform.claude.com/docs/en/api/models/list. */
export const anthropicModelSchema = named(
  "AnthropicModel",
  z.object({
    type: z.literal("model"),
    id: z.string(),
    display_name: z.string(),
    created_at: z.iso.datetime().describe("When the catalogue's entry was made"),
    max_input_tokens: z.number().int(),
    max_tokens: z.null(),
    capabilities: z.null(),
    line: z.null(),
    lifecycle: z.literal("active"),
    deprecated_at: z.null(),
    retires_at: z.null(),
  }),
);

export const anthropicModelsSchema = z.object({
  data: z.array(anthropicModelSchema),
  has_more: z.literal(false),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
});

export function toAnthropicModel(model: ModelEntry): z.output<typeof anthropicModelSchema> {
  const { id, name, contextWindow, priceDate } = model;
  const created = new Date(priceDate ?? 0).toISOString();
  return {
    type: "model",
    id,
    display_name: name,
    created_at: created,
    max_input_tokens: contextWindow,
    max_tokens: null,
    capabilities: null,
    line: null,
    lifecycle: "active",
    deprecated_at: null,
    retires_at: null,
  };
}

/** Embedding models are left out: Anthropic has none, and its clients would offer them for chats. */
export function toAnthropicModels(models: readonly ModelEntry[]): z.output<typeof anthropicModelsSchema> {
  const data = models.filter(({ type }) => type !== "embedding" && type !== "rerank").map(toAnthropicModel);
  return { data, has_more: false, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
}
