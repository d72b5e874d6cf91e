import { z } from "zod";
import { logprobsSchema } from "../../gateway/logprobs.ts";
import {
  assistantMessage,
  conversationOf,
  MAX_TOOLS,
  reasoningDetailsSchema,
  textContent,
  toolCallSchema,
  toolMessage,
  userMessage,
} from "../../gateway/message-schemas.ts";
import {
  citationsOfRun,
  finishReason,
  providerFinishReason,
  samplingFields,
  streamErrorSchema,
  tokenCount,
  tokenLimit,
  toolChoiceSchema,
  toolSchema,
  usageSchema,
  wordFields,
} from "../../gateway/schemas.ts";

const messageSchema = z.discriminatedUnion("role", [
  z.object({ role: z.enum(["system", "developer"]), content: textContent }),
  userMessage,
  assistantMessage,
  toolMessage,
]);

/** The body of `POST /v1/chat/completions`: https://platform.openai.com/docs/api-reference/chat/create. */
export const openAiChatBodySchema = z.object({
  model: z
    .string()
    .min(1)
    .max(200)
    .describe("A model, `meta-llm`, `auto`, `agent:<agentId or name>` or `composite:<pattern>[:<profile>]`"),
  messages: conversationOf(messageSchema),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  ...samplingFields,
  ...wordFields,
  max_tokens: tokenLimit.nullish(),
  max_completion_tokens: tokenLimit.nullish().describe("The same as `max_tokens`"),
  n: z.literal(1, "only one choice is made").nullish(),
  tools: z.array(toolSchema).max(MAX_TOOLS).nullish(),
  tool_choice: toolChoiceSchema.nullish(),
});
export type OpenAiChatBody = z.output<typeof openAiChatBodySchema>;

/** What is reported of a call besides what OpenAI reports. */
const account = z.object({
  logId: z.string(),
  costUsd: z.number().min(0),
  cached: z.boolean(),
  providerFinishReason,
  citations: citationsOfRun,
});

/** A page that a text rests on, as OpenAI's searching models name it. */
const annotationSchema = z.object({
  type: z.literal("url_citation"),
  url_citation: z.object({ start_index: tokenCount, end_index: tokenCount, title: z.string(), url: z.string() }),
});
const annotations = z.array(annotationSchema).optional();

/** The JSON answer of `POST /v1/chat/completions`. */
export const openAiCompletionSchema = z.object({
  id: z.string(),
  object: z.literal("chat.completion"),
  created: z.number().int(),
  model: z.string(),
  choices: z.array(
    z.object({
      index: z.literal(0),
      message: z.object({
        role: z.literal("assistant"),
        content: z.string().nullable(),
        refusal: z.null(),
        reasoning_content: z.string().optional(),
        reasoning_details: reasoningDetailsSchema.optional(),
        tool_calls: z.array(toolCallSchema).optional(),
        annotations,
      }),
      logprobs: logprobsSchema.nullable(),
      finish_reason: finishReason,
    }),
  ),
  usage: usageSchema,
  ...account.shape,
});
export type OpenAiCompletion = z.input<typeof openAiCompletionSchema>;

/** One chunk of the stream. The last one with a choice has its `finish_reason`, and what the call cost. */
const openAiChunkSchema = z.object({
  id: z.string(),
  object: z.literal("chat.completion.chunk"),
  created: z.number().int(),
  model: z.string(),
  choices: z.array(
    z.object({
      index: z.literal(0),
      delta: z.object({
        role: z.literal("assistant").optional(),
        content: z.string().optional(),
        reasoning_content: z.string().optional(),
        reasoning_details: reasoningDetailsSchema.optional(),
        annotations,
        tool_calls: z
          .array(
            z.object({
              index: tokenCount,
              id: z.string().optional(),
              type: z.literal("function").optional(),
              function: z.object({ name: z.string().optional(), arguments: z.string() }),
            }),
          )
          .optional(),
      }),
      logprobs: logprobsSchema.nullable(),
      finish_reason: finishReason.nullable(),
    }),
  ),
  usage: usageSchema.nullish(),
  ...account.partial().shape,
});
export type OpenAiChunk = z.input<typeof openAiChunkSchema>;

/** The data of an event of the stream: a chunk, the closing `[DONE]`, or the failure of a stream that had begun. */
export const openAiEventSchema = z.union([
  openAiChunkSchema,
  z.literal("[DONE]"),
  z.object({ error: streamErrorSchema }),
]);
