import { z } from "zod";
import { efforts, features } from "../model.ts";
import { isCustom } from "../registry.ts";
import { wireNames } from "../wires.ts";

/** Models of one custom provider, and texts of its settings in characters. */
const MAX_MODELS = 50;
const MAX_URL = 500;
const MAX_MODEL_ID = 150;
const MAX_TEXT = 100;
const MAX_TOKENS = 100_000_000;

const usd = z.number().min(0).max(10_000);
const tokens = z.number().int().min(1).max(MAX_TOKENS);

const customModelSchema = z.strictObject({
  id: z
    .string()
    .min(1)
    .max(MAX_MODEL_ID)
    .regex(/^[!-~]+$/, "must be visible ASCII characters without blanks")
    .describe("As the provider names it; it is called as `name/id`"),
  name: z.string().min(1).max(MAX_TEXT).optional(),
  type: z
    .enum(["chat", "coding", "reasoning", "embedding", "rerank"])
    .describe("`rerank` asks `POST /rerank` of the base URL, as Cohere and Jina have it"),
  contextWindow: tokens,
  maxOutput: tokens.optional().describe("Tokens of its longest response; default: the context window"),
  inputUsdPerMTok: usd,
  outputUsdPerMTok: usd,
  cachedInputUsdPerMTok: usd.optional().describe("Of tokens that the provider reads from its prompt cache"),
  cacheWriteUsdPerMTok: usd.optional().describe("Of tokens that the provider writes to its prompt cache"),
  supportedFeatures: z
    .array(z.enum(features))
    .max(features.length)
    .optional()
    .describe("Of a model that chats; default: what servers of the wire format commonly have"),
  reasoningEfforts: z
    .array(z.enum(efforts))
    .max(efforts.length)
    .optional()
    .describe("None for a model that does not reason"),
});

/** Whether a custom provider may have this name. A name of a provider of the platform is not allowed. */
export const isCustomName = (name: string) => /^[a-z0-9-]{1,40}$/.test(name) && isCustom(name);

const settingsSchema = z.strictObject({
  baseUrl: z
    .string()
    .min(1)
    .max(MAX_URL)
    .describe("As the clients of the wire format take it: with `/v1` for OpenAI's, without for Anthropic's"),
  wire: z.enum(wireNames),
  models: z.array(customModelSchema).min(1).max(MAX_MODELS),
});

/** The body of `PUT /ai/providers/custom/:name`. */
export const customProviderBodySchema = settingsSchema.extend({
  key: z
    .string()
    .min(1)
    .max(500)
    .regex(/^[!-~]+$/, "must be visible ASCII characters without blanks"),
});
export type CustomProviderBody = z.output<typeof customProviderBodySchema>;

export const customProviderViewSchema = z.object({
  name: z.string(),
  ...settingsSchema.shape,
  keyPreview: z.string(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
