import { z } from "zod";
import { type ReasoningDetail, reasoningDetailsSchema } from "../../message-schemas.ts";
import type { WireCall } from "../tool-calls.ts";
import { inputDetails, outputDetails, tokens } from "../usage.ts";

/** What is read of OpenAI's wire format; what other servers leave out, or send as null, is allowed to be missing. */
export const wireUsage = z.object({
  prompt_tokens: tokens,
  completion_tokens: tokens.nullish(),
  total_tokens: tokens.nullish().catch(undefined),
  prompt_tokens_details: inputDetails,
  completion_tokens_details: outputDetails,
});

const called = z.object({ name: z.string(), arguments: z.unknown().optional() });
const toolCall = z.object({ id: z.unknown().optional(), function: called });

const choice = z.object({
  message: z.object({
    content: z.union([z.string(), z.array(z.unknown()), z.record(z.string(), z.unknown())]).nullish(),
    refusal: z.string().nullish(),
    /** Name in vLLM, DeepSeek and others. */
    reasoning_content: z.string().nullish(),
    /** Name in Ollama and OpenRouter. */
    reasoning: z.string().nullish(),
    reasoning_details: z.unknown().optional(),
    tool_calls: z.array(toolCall).nullish(),
    /** The name before `tool_calls`. */
    function_call: called.nullish(),
  }),
  finish_reason: z.unknown().optional(),
  logprobs: z.unknown().optional(),
  error: z.unknown().optional(),
});

export const wireCompletion = z.object({
  choices: z.tuple([choice]).rest(choice),
  id: z.string().nullish().catch(undefined),
  model: z.string().nullish(),
  usage: z.unknown().optional(),
  service_tier: z.string().nullish(),
  error: z.unknown().optional(),
});

export type WireCompletion = z.infer<typeof wireCompletion>;

/** The frame of an embeddings answer; the numbers themselves are checked while they are copied. */
export const wireEmbeddings = z.object({
  data: z.array(z.object({ index: z.number().int().optional(), embedding: z.unknown() })),
  model: z.string().nullish(),
  usage: z.object({ prompt_tokens: z.number() }).nullish(),
});

/** What is there of one that broke off. */
export const startedEmbeddings = z.object({
  data: z.array(z.object({})).min(1),
  usage: z.object({ prompt_tokens: z.number() }).nullish().catch(undefined),
});

/** One event of a streamed completion. It is checked by hand as it is read, because there is one for every token. */
export type WireChunk = {
  id?: unknown;
  model?: unknown;
  choices?: {
    index?: number;
    delta?: WireDelta | null;
    finish_reason?: unknown;
    logprobs?: unknown;
    error?: unknown;
  }[];
  usage?: unknown;
  service_tier?: unknown;
  error?: unknown;
};

export type WireDelta = {
  content?: unknown;
  refusal?: string | null;
  reasoning_content?: string | null;
  reasoning?: string | null;
  reasoning_details?: unknown;
  tool_calls?: { index?: unknown; id?: unknown; function?: WireCall | null }[] | null;
  function_call?: WireCall | null;
};

/** The reasoning that is to come back, as this product gives it; what other servers name so has other forms. */
export function readReasoningDetails(details: unknown): readonly ReasoningDetail[] {
  if (details === undefined) return []; // as in most answers: a schema that fails is slow
  // Kept as it came: a schema would put its fields into another order.
  return reasoningDetailsSchema.safeParse(details).success ? (details as ReasoningDetail[]) : [];
}
