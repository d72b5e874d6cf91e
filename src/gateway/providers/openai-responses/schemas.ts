import { z } from "zod";
import { inputDetails, outputDetails, tokens } from "../usage.ts";

/**
 * What is read of OpenAI's Responses API (API reference, "The response object"). Output items and contents of kinds that are
 * not named here are passed over: they are of tools that are never asked for.
 */
const usage = z.object({
  input_tokens: tokens,
  output_tokens: tokens.nullish(),
  total_tokens: tokens.nullish(),
  input_tokens_details: inputDetails,
  output_tokens_details: outputDetails,
});

const otherThan = (known: readonly string[]) =>
  z.object({ type: z.string().refine((type) => !known.includes(type)) }).transform(() => undefined);

const messageItem = z.object({
  type: z.literal("message"),
  content: z.array(
    z.union([
      z.object({ type: z.literal("output_text"), text: z.string() }),
      z.object({ type: z.literal("refusal"), refusal: z.string() }),
      otherThan(["output_text", "refusal"]),
    ]),
  ),
});

const functionCallItem = z.object({
  type: z.literal("function_call"),
  call_id: z.string().nullish(),
  id: z.string().nullish(),
  name: z.string(),
  arguments: z.unknown().optional(),
});

/** Kept as it came: an object schema would put its fields into another order. */
const reasoningItem = z
  .record(z.string(), z.unknown())
  .refine(({ type }) => type === "reasoning")
  .transform((item) => ({ type: "reasoning" as const, item }));

const outputItem = z.union([
  messageItem,
  functionCallItem,
  reasoningItem,
  otherThan(["message", "function_call", "reasoning"]),
]);

export const wireResponse = z.object({
  status: z.string().nullish(),
  output: z.array(outputItem),
  id: z.string().nullish().catch(undefined),
  model: z.string().nullish(),
  usage: usage.nullish().catch(undefined),
  service_tier: z.string().nullish(),
  incomplete_details: z.object({ reason: z.string().nullish() }).nullish(),
  error: z.unknown().optional(),
});
export type WireResponse = z.infer<typeof wireResponse>;

/** What is there of one that broke off. An item that is not all there is passed over. */
export const startedResponse = wireResponse.extend({
  object: z.literal("response"),
  output: z.array(outputItem.catch(undefined)).default([]),
});

/** What the last event of a stream is read for: the output has come by then. */
export const endedResponse = wireResponse.omit({ output: true });
export type EndedResponse = z.infer<typeof endedResponse>;

/** The texts of a reasoning item that may be shown: OpenAI's summary, or what an open model thought. */
export const reasoningTexts = z.object({
  summary: z.array(z.object({ text: z.string() })).default([]),
  content: z.array(z.object({ text: z.string() })).nullish(),
  encrypted_content: z.string().nullish(),
});

export type WireUsage = z.infer<typeof usage>;

/** One event of a streamed response. It is checked by hand as it is read, because there is one for every token. */
export type WireEvent = {
  type?: string;
  delta?: string;
  output_index?: number;
  summary_index?: number;
  item?: Record<string, unknown>;
  response?: unknown;
  error?: unknown;
};
