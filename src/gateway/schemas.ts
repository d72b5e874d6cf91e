import { z } from "zod";
import { isSmallJson, withFewFields } from "../bounded-json.ts";
import { providerIds } from "./providers/registry.ts";

export const MAX_MESSAGES = 200;
const MAX_MESSAGE_CHARACTERS = 400_000;
export const MAX_TOOLS = 128;

export const text = z.string().max(MAX_MESSAGE_CHARACTERS);
const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, "must be 1 to 64 letters, digits, _ or -");
export const toolCallId = z.string().min(1).max(200);

/** A call of a tool, the same in requests and answers, so that an answer's calls can be sent back as they are. */
export const toolCallSchema = z.object({
  id: toolCallId,
  type: z.literal("function"),
  function: z.object({ name: toolName, arguments: z.string().max(MAX_MESSAGE_CHARACTERS) }),
});
export const toolCallsSchema = z.array(toolCallSchema).min(1).max(MAX_TOOLS);

const messageSchema = z.discriminatedUnion("role", [
  z.object({ role: z.literal("system"), content: text }),
  z.object({ role: z.literal("user"), content: text }),
  z.object({
    role: z.literal("assistant"),
    content: text.nullish().describe("May be missing or null when there are tool calls"),
    tool_calls: toolCallsSchema.optional(),
    toolCalls: toolCallsSchema.optional().describe("The same as `tool_calls`"),
  }),
  z.object({ role: z.literal("tool"), content: text, tool_call_id: toolCallId }),
]);

/** How large a JSON Schema may be that a caller gives for a model to fill. */
const schemaBounds = { values: 5_000, levels: 32, characters: 128 << 10 };
export const isSmallSchema = (value: unknown) => isSmallJson(value, schemaBounds);
export const tooLargeSchema = "is larger than 5000 values, 32 levels or 131072 characters";
const MAX_SCHEMA_KEYWORDS = 100;

export const toolSchema = z.object({
  type: z.literal("function"),
  function: z.object({
    name: toolName,
    description: z.string().max(20_000).optional(),
    parameters: withFewFields(MAX_SCHEMA_KEYWORDS, z.record(z.string(), z.unknown()))
      .refine(isSmallSchema, tooLargeSchema)
      .optional()
      .describe("JSON Schema of the arguments"),
  }),
});

export const toolChoiceSchema = z.union([
  z.enum(["auto", "none", "required"]),
  z.object({ type: z.literal("function"), function: z.object({ name: toolName }) }),
]);

export const tokenLimit = z.number().int().min(1).max(1_000_000);

/** The body of `POST /ai/chat`. */
export const chatBodySchema = z.object({
  messages: z.array(messageSchema).min(1).max(MAX_MESSAGES),
  model: z.string().min(1).max(200).default("meta-llm").describe("A model, `meta-llm` or `auto`"),
  stream: z.boolean().default(false),
  temperature: z.number().min(0).max(2).optional(),
  maxTokens: tokenLimit.optional().describe("Cap on the tokens of the answer"),
  max_tokens: tokenLimit.optional().describe("The same as `maxTokens`"),
  systemPrompt: text.optional().describe("Put before the messages as a system message"),
  prefer_async: z.boolean().optional().describe("Answer through a batch at half price, where the model has one"),
  tools: z.array(toolSchema).min(1).max(MAX_TOOLS).optional(),
  tool_choice: toolChoiceSchema.optional(),
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
export const finishReason = z.enum(["stop", "length", "tool_calls", "content_filter"]);
export const usageSchema = z.object({
  prompt_tokens: tokenCount,
  completion_tokens: tokenCount,
  total_tokens: tokenCount,
});

/** The JSON answer of `POST /ai/chat`. */
export const chatResponseSchema = z.object({
  text: z.string(),
  choices: z.array(
    z.object({
      message: z.object({
        role: z.literal("assistant"),
        content: z.string(),
        tool_calls: z.array(toolCallSchema).optional(),
      }),
      finish_reason: finishReason,
    }),
  ),
  toolCalls: z.array(toolCallSchema).optional(),
  reasoning: z.string().optional(),
  logId: z.string(),
  inputTokens: tokenCount,
  outputTokens: tokenCount,
  usage: usageSchema,
  cached: z.boolean(),
  costUsd: z.number().min(0),
  model: z.string(),
  _preprocessing: preprocessingSchema.optional(),
});
export type ChatResponse = z.input<typeof chatResponseSchema>;

/** One event of the stream of `POST /ai/chat`: a delta, the end, or the failure of a stream that had begun. */
export const chatEventSchema = z.union([
  z.object({
    delta: z.object({ content: z.string(), reasoning: z.string().optional() }),
    done: z.literal(false),
  }),
  z.object({
    done: z.literal(true),
    logId: z.string(),
    inputTokens: tokenCount,
    outputTokens: tokenCount,
    finishReason,
    model: z.string(),
    cached: z.boolean(),
    costUsd: z.number().min(0),
    toolCalls: z.array(toolCallSchema).optional(),
    _preprocessing: preprocessingSchema.optional(),
  }),
  z.object({
    done: z.literal(true),
    error: z.object({ type: z.string(), code: z.string(), message: z.string() }).loose(),
  }),
]);

/** One entry of `GET /ai/models`. */
export const modelEntrySchema = z.object({
  id: z.string(),
  name: z.string(),
  provider: z.enum(providerIds),
  type: z.string(),
  contextWindow: z.number().int().positive(),
  inputCostPer1k: z.number().min(0).describe("USD for 1,000 tokens"),
  outputCostPer1k: z.number().min(0).describe("USD for 1,000 tokens"),
  supportedFeatures: z.array(z.string()),
  aliases: z.array(z.string()).optional().describe("Other names that it is called by"),
  batch: z.literal(true).optional().describe("Whether `prefer_async` answers through a batch, at half the price"),
  priceSource: z.string().optional(),
  priceDate: z.string().optional(),
});
export type ModelEntry = z.output<typeof modelEntrySchema>;

/** Which models are listed. */
export const modelQuerySchema = z.object({
  provider: z.enum(providerIds).optional(),
  type: z.string().min(1).max(50).optional().describe("Task type, as `chat`, `coding`, `reasoning`, `embedding`"),
});
export type ModelQuery = z.output<typeof modelQuerySchema>;

/** The body of `POST /ai/embeddings`. */
export const embeddingsBodySchema = z.object({
  input: z.union([text.min(1), z.array(text.min(1)).min(1).max(2_048)]),
  model: z.string().min(1).max(200).optional(),
  dimensions: z.number().int().min(1).max(4_096).optional(),
  encoding_format: z.enum(["float", "base64"]).default("float"),
});

/** The answer of `POST /ai/embeddings`: OpenAI's list, with cost and log id. */
export const embeddingsResponseSchema = z.object({
  object: z.literal("list"),
  data: z.array(
    z.object({
      object: z.literal("embedding"),
      index: z.number().int().min(0),
      embedding: z.union([z.array(z.number()), z.string()]),
    }),
  ),
  model: z.string(),
  usage: z.object({ prompt_tokens: tokenCount, total_tokens: tokenCount }),
  costUsd: z.number().min(0),
  logId: z.string(),
});
