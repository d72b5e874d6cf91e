import { z } from "zod";
import { text } from "./message-schemas.ts";
import { tokenCount } from "./schemas.ts";

const MAX_INPUTS = 2_048;
/** Of one text, as at OpenAI. */
const MAX_TOKENS = 8_192;
/** Of `cl100k_base`, in which OpenAI's models embed. */
const tokenNumber = z.number().int().min(0).max(100_276);

/** The body of `POST /ai/embeddings`. */
export const embeddingsBodySchema = z.object({
  input: z
    .union([
      text.min(1),
      z.array(text.min(1)).min(1).max(MAX_INPUTS),
      z.array(tokenNumber).min(1).max(MAX_TOKENS),
      z.array(z.array(tokenNumber).min(1).max(MAX_TOKENS)).min(1).max(MAX_INPUTS),
    ])
    .describe("A text or several; or the tokens of them in OpenAI's encoding `cl100k_base`"),
  model: z.string().min(1).max(200).nullish(),
  dimensions: z.number().int().min(1).max(4_096).nullish(),
  encoding_format: z.enum(["float", "base64"]).nullable().default("float"),
});

export type EmbeddingsBody = z.output<typeof embeddingsBodySchema>;

/** The response of `POST /ai/embeddings`: OpenAI's list, with cost and log id. */
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
