import { z } from "zod";

const token = z.object({
  token: z.string(),
  logprob: z.number(),
  bytes: z.array(z.number().int()).nullable().catch(null).default(null),
});
const logprob = token.extend({ top_logprobs: z.array(token).catch([]).default([]) });

/** The probability of a token of an answer, and of its alternatives. */
export type Logprob = z.output<typeof logprob>;

/** The tokens of an answer, or of a part of a stream, as OpenAI gives them. */
export const logprobsSchema = z.object({ content: z.array(logprob), refusal: z.null() });

const reported = z.array(logprob);

/** The token probabilities that a provider reports; undefined if they cannot be read. */
export function readLogprobs(given: unknown): Logprob[] | undefined {
  if (typeof given !== "object" || given === null) return undefined; // as in most answers
  const { content, refusal } = Object(given);
  const { data } = reported.safeParse(content ?? refusal);
  return data?.length ? data : undefined;
}

/** The token probabilities in the form of a choice. */
export const toWireLogprobs = (content: Logprob[]) => ({ content, refusal: null });
