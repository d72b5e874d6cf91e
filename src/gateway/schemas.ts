import { z } from "zod";
import { isSmallJson, withFewFields } from "../lib/bounded-json.ts";
import { placedCitationSchema } from "./citation.ts";
import { logprobsSchema } from "./logprobs.ts";
import {
  assistantMessage,
  conversationOf,
  MAX_PARTS,
  MAX_TOOLS,
  reasoningDetailsSchema,
  text,
  textContent,
  toolCallSchema,
  toolCallsSchema,
  toolMessage,
  toolName,
  userMessage,
} from "./message-schemas.ts";
import { defaultModelAlias } from "./providers/edge/models.ts";
import { efforts } from "./providers/model.ts";
import { serviceTiers } from "./providers/provider.ts";

const messageSchema = z.discriminatedUnion("role", [
  z.object({ role: z.literal("system"), content: textContent }),
  userMessage,
  assistantMessage.extend({ toolCalls: toolCallsSchema.nullish().describe("The same as `tool_calls`") }),
  toolMessage,
]);

/** How large a JSON Schema may be that a caller gives for a model to fill. */
const schemaBounds = { values: 5_000, levels: 32, characters: 128 << 10 };
const isSmallSchema = (value: unknown) => isSmallJson(value, schemaBounds);
const tooLargeSchema = "is larger than 5000 values, 32 levels or 131072 characters";
const MAX_SCHEMA_KEYWORDS = 100;
const MAX_FORMAT_FIELDS = 20;

/** A JSON Schema that a caller gives for a model to fill. */
export const callersSchema = withFewFields(MAX_SCHEMA_KEYWORDS, z.record(z.string(), z.unknown())).refine(
  isSmallSchema,
  tooLargeSchema,
);

export const toolSchema = z.object({
  type: z.literal("function"),
  function: z.object({
    name: toolName,
    description: z.string().max(20_000).nullish(),
    parameters: callersSchema.nullish().describe("JSON Schema of the arguments"),
  }),
});

const namedFunction = z.object({ type: z.literal("function"), function: z.object({ name: toolName }) });

export const toolChoiceSchema = z.union([
  z.enum(["auto", "none", "required"]),
  z.discriminatedUnion("type", [
    namedFunction,
    z.object({
      type: z.literal("allowed_tools"),
      allowed_tools: z.object({
        mode: z.enum(["auto", "required"]),
        tools: z.array(namedFunction).min(1).max(MAX_TOOLS),
      }),
    }),
  ]),
]);

export const tokenLimit = z.number().int().min(1).max(1_000_000);

/** The schema of an answer: https://platform.openai.com/docs/guides/structured-outputs. */
export const schemaFormat = z.object({
  name: toolName,
  description: z.string().max(20_000).nullish(),
  schema: withFewFields(MAX_SCHEMA_KEYWORDS, z.record(z.string(), z.unknown())),
  strict: z.boolean().nullish(),
});

/** Bounds what describes the form of an answer. */
export const asFormat = <S extends z.ZodType>(schema: S) =>
  withFewFields(MAX_FORMAT_FIELDS, schema).refine(isSmallSchema, tooLargeSchema);

/** OpenAI's bounds of `metadata`, of `safety_identifier` and of `prompt_cache_key`, and ours of `user`. */
const MAX_METADATA = 16;
const metadataName = z.string().min(1).max(64);
const metadataValue = z.string().max(512);
/** Clients send an empty one for none. */
const identifier = z.string().max(64);
const MAX_USER = 512;

const penalty = z.number().min(-2).max(2).nullish();
const MAX_BIASES = 1_024;
/** What OpenAI's chats alone have: https://platform.openai.com/docs/api-reference/chat/create. */
export const wordFields = {
  logit_bias: withFewFields(
    MAX_BIASES,
    z.record(z.string().regex(/^\d{1,7}$/, "must be a token's number"), z.number().min(-100).max(100)),
  ).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.number().int().min(0).max(20).nullish(),
  prediction: z
    .object({
      type: z.literal("content"),
      content: z.union([text, z.array(z.object({ type: z.literal("text"), text })).max(MAX_PARTS)]),
    })
    .nullish()
    .describe("What much of the answer will be"),
};

/** What both surfaces take to steer an answer; null stands for absence. */
export const samplingFields = {
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  stop: z.union([z.string().min(1).max(500), z.array(z.string().min(1).max(500)).max(4)]).nullish(),
  seed: z.number().int().nullish(),
  response_format: asFormat(
    z.discriminatedUnion("type", [
      z.looseObject({ type: z.literal("text") }),
      z.looseObject({ type: z.literal("json_object") }),
      z.looseObject({ type: z.literal("json_schema"), json_schema: schemaFormat }),
    ]),
  )
    .nullish()
    .describe("An answer that does not match its schema is an error, `response_format_mismatch`"),
  reasoning_effort: z.enum(efforts).nullish().describe("How much the model is to reason"),
  verbosity: z.enum(["low", "medium", "high"]).nullish().describe("How long the answer is to be"),
  parallel_tool_calls: z.boolean().nullish().describe("Whether the model may call several tools at once"),
  metadata: withFewFields(MAX_METADATA, z.record(metadataName, metadataValue)).nullish(),
  user: z.string().max(MAX_USER).nullish().describe("Your user, for a provider that looks for abuse"),
  safety_identifier: identifier.nullish().describe("The name that replaces `user`"),
  service_tier: z.enum(serviceTiers).nullish(),
  prompt_cache_key: identifier.nullish().describe("The same for calls that begin alike, so that they share a cache"),
  presence_penalty: penalty,
  frequency_penalty: penalty,
};

const same = <S extends z.ZodType>(schema: S, name: string) => schema.describe(`The same as \`${name}\``);

/** The body of `POST /ai/chat`. Null stands for absence. */
export const chatBodySchema = z.object({
  ...wordFields,
  messages: conversationOf(messageSchema),
  model: z
    .string()
    .min(1)
    .max(200)
    .nullable()
    .default(defaultModelAlias)
    .describe("A model, `meta-llm` or `auto`; or an agent or a pattern, as on `/v1/chat/completions`"),
  stream: z.boolean().nullable().default(false),
  ...samplingFields,
  topP: same(samplingFields.top_p, "top_p"),
  responseFormat: same(samplingFields.response_format, "response_format"),
  reasoningEffort: same(samplingFields.reasoning_effort, "reasoning_effort"),
  parallelToolCalls: same(samplingFields.parallel_tool_calls, "parallel_tool_calls"),
  safetyIdentifier: same(samplingFields.safety_identifier, "safety_identifier"),
  serviceTier: same(samplingFields.service_tier, "service_tier"),
  promptCacheKey: same(samplingFields.prompt_cache_key, "prompt_cache_key"),
  maxTokens: tokenLimit.nullish().describe("Cap on the tokens of the answer"),
  max_tokens: same(tokenLimit.nullish(), "maxTokens"),
  systemPrompt: text.nullish().describe("Put before the messages as a system message"),
  prefer_async: z.boolean().nullish().describe("Answer through a batch at half price, where the model has one"),
  tools: z.array(toolSchema).min(1).max(MAX_TOOLS).nullish(),
  tool_choice: toolChoiceSchema.nullish(),
  toolChoice: same(toolChoiceSchema.nullish(), "tool_choice"),
});
export type ChatBody = z.output<typeof chatBodySchema>;

export const tokenCount = z.number().int().min(0);
const routingSchema = z.object({
  requested: z.string(),
  model: z.string(),
  provider: z.string(),
  reason: z.string(),
  skipped: z
    .array(z.object({ model: z.string(), provider: z.string(), reason: z.string() }))
    .optional()
    .describe("Models that came first and failed, or were not called"),
});
const timingsSchema = z.object({ total: z.number(), provider: z.number(), firstToken: z.number().optional() });
/** What was done with a chat on its way. Tokens of the compression are estimates; `ratio` is compressed by original. */
const preprocessingSchema = z.object({
  compression: z
    .object({
      originalTokens: tokenCount,
      compressedTokens: tokenCount,
      ratio: z.number(),
      techniques: z.array(z.string()),
    })
    .optional(),
  routing: routingSchema,
  cache: z.object({ status: z.enum(["off", "miss", "hit", "shared"]) }),
  timingsMs: timingsSchema,
});
export type Preprocessing = z.output<typeof preprocessingSchema>;
export const finishReason = z.enum(["stop", "length", "tool_calls", "content_filter"]);
export const providerFinishReason = z
  .string()
  .optional()
  .describe("The provider's own word for the end, where it is one that is not known: the answer counts as cut");
export const usageSchema = z.object({
  prompt_tokens: tokenCount,
  completion_tokens: tokenCount,
  total_tokens: tokenCount,
  prompt_tokens_details: z
    .object({ cached_tokens: tokenCount })
    .optional()
    .describe("Those of `prompt_tokens` that the provider read from its cache, where it read or wrote any"),
  completion_tokens_details: z
    .object({ reasoning_tokens: tokenCount })
    .optional()
    .describe("Those of `completion_tokens` that were thought, where the provider reports them"),
  cache_read_input_tokens: tokenCount.optional().describe("The same as `prompt_tokens_details.cached_tokens`"),
  cache_creation_input_tokens: tokenCount.optional().describe("Those that it wrote to its cache"),
});
export type WireUsage = z.input<typeof usageSchema>;

export const citationsOfRun = z
  .array(placedCitationSchema)
  .optional()
  .describe("Of an agent as model that has searched documents: what the answer rests on");

/** What is reported with a whole answer, and with the end of a stream. */
const reportedFields = {
  toolCalls: z.array(toolCallSchema).optional(),
  logId: z.string(),
  inputTokens: tokenCount,
  outputTokens: tokenCount,
  cached: z.boolean(),
  costUsd: z.number().min(0),
  model: z.string(),
  providerFinishReason,
  citations: citationsOfRun,
  _preprocessing: preprocessingSchema.optional(),
};

/** The JSON answer of `POST /ai/chat`. */
export const chatResponseSchema = z.object({
  text: z.string(),
  choices: z.array(
    z.object({
      message: z.object({
        role: z.literal("assistant"),
        content: z.string(),
        tool_calls: z.array(toolCallSchema).optional(),
        reasoning_details: reasoningDetailsSchema.optional(),
      }),
      finish_reason: finishReason,
      logprobs: logprobsSchema.optional().describe("If `logprobs` was asked for, of a model that takes it"),
    }),
  ),
  reasoning: z.string().optional(),
  usage: usageSchema,
  ...reportedFields,
});
export type ChatResponse = z.input<typeof chatResponseSchema>;

/** The failure of a stream that had begun. */
export const streamErrorSchema = z.object({ type: z.string(), code: z.string(), message: z.string() }).loose();

/** One event of the stream of `POST /ai/chat`: a delta, the end, or the failure of a stream that had begun. */
export const chatEventSchema = z.union([
  z.object({
    delta: z.object({
      content: z.string(),
      reasoning: z.string().optional(),
      reasoning_details: reasoningDetailsSchema.optional(),
    }),
    logprobs: logprobsSchema.optional(),
    done: z.literal(false),
  }),
  z.object({
    done: z.literal(true),
    finishReason,
    usage: usageSchema.optional().describe("Where the provider's cache was read or written"),
    ...reportedFields,
  }),
  z.object({ done: z.literal(true), error: streamErrorSchema }),
]);
