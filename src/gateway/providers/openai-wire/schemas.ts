import { z } from "zod";
import { type ReasoningDetail, reasoningDetailsSchema } from "../../message-schemas.ts";

/** What is read of OpenAI's wire format; what other servers leave out, or send as null, is allowed to be missing. */
const usage = z.object({
  prompt_tokens: z.number(),
  completion_tokens: z.number().nullish(),
  prompt_tokens_details: z
    .object({ cached_tokens: z.number().nullish(), cache_write_tokens: z.number().nullish() })
    .nullish(),
  completion_tokens_details: z.object({ reasoning_tokens: z.number().nullish() }).nullish(),
});

const toolCall = z.object({
  id: z.string().nullish(),
  function: z.object({ name: z.string(), arguments: z.string() }),
});

const choice = z.object({
  message: z.object({
    content: z.string().nullish(),
    refusal: z.string().nullish(),
    /** Name in vLLM, DeepSeek and others. */
    reasoning_content: z.string().nullish(),
    /** Name in Ollama and OpenRouter. */
    reasoning: z.string().nullish(),
    reasoning_details: z.unknown().optional(),
    tool_calls: z.array(toolCall).nullish(),
  }),
  finish_reason: z.string().nullish(),
});

export const wireCompletion = z.object({
  choices: z.tuple([choice]).rest(choice),
  model: z.string().nullish(),
  usage: usage.nullish(),
  service_tier: z.string().nullish(),
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

/** The usage of a completion; `cached_tokens` and `cache_write_tokens` are parts of the prompt's. */
export type WireUsage = Partial<z.infer<typeof usage>>;

/** One event of a streamed completion. It is checked by hand as it is read, because there is one for every token. */
export type WireChunk = {
  choices?: {
    index?: number;
    delta?: {
      content?: string | null;
      refusal?: string | null;
      reasoning_content?: string | null;
      reasoning?: string | null;
      reasoning_details?: unknown;
      tool_calls?: { index?: number; id?: string; function?: { name?: string; arguments?: string } }[] | null;
    };
    finish_reason?: string | null;
  }[];
  usage?: WireUsage | null;
  service_tier?: unknown;
  error?: unknown;
};

/** The reasoning that is to come back, as this product gives it; what other servers name so has other forms. */
export function readReasoningDetails(details: unknown): readonly ReasoningDetail[] {
  if (details === undefined) return []; // as in most answers: a schema that fails is slow
  // Kept as it came: a schema would put its fields into another order.
  return reasoningDetailsSchema.safeParse(details).success ? (details as ReasoningDetail[]) : [];
}
