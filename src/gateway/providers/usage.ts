import { z } from "zod";
import type { Usage } from "./provider.ts";

/** A number of tokens; some servers send it as a text. */
export const tokens = z.union([
  z.number(),
  z
    .string()
    .regex(/^\d{1,12}$/)
    .transform(Number),
]);
const details = <S extends z.ZodRawShape>(shape: S) => z.object(shape).nullish().catch(undefined);
export const inputDetails = details({ cached_tokens: tokens.nullish(), cache_write_tokens: tokens.nullish() });
export const outputDetails = details({ reasoning_tokens: tokens.nullish() });

/** The tokens of a usage in OpenAI's wires. */
type Counted = {
  input: number;
  output: number | null | undefined;
  total: number | null | undefined;
  ofInput: z.output<typeof inputDetails>;
  ofOutput: z.output<typeof outputDetails>;
  tier: unknown;
};

/**
 * A usage in our terms. Some servers, as xAI's, count what a model thought beside the tokens of its answer, which their total
 * shows; others count it wrongly.
 */
export function toTokens({ input, output, total, ofInput, ofOutput, tier }: Counted): Usage {
  const thought = ofOutput?.reasoning_tokens ?? 0;
  const answer = output ?? 0;
  const isBeside = thought > 0 && total === input + answer + thought;
  const outputTokens = isBeside ? answer + thought : answer;
  const isPart = Number.isInteger(thought) && thought > 0 && thought <= outputTokens;
  const { cached_tokens: cachedTokens, cache_write_tokens: cacheWriteTokens } = ofInput ?? {};
  return {
    inputTokens: input,
    outputTokens,
    ...(isPart ? { reasoningTokens: thought } : {}),
    ...(cachedTokens ? { cachedTokens } : {}),
    ...(cacheWriteTokens ? { cacheWriteTokens } : {}),
    ...(tier === "flex" ? { isFlex: true } : {}),
  };
}

/**
 * The latest of several reports of one answer. What a later one says to be nothing was counted before: some servers end with
 * zeros, or report the prompt and the answer apart.
 */
export function latestUsage(before: Usage | undefined, now: Usage): Usage {
  if (before === undefined) return now;
  const { outputTokens, reasoningTokens, ...prompt } = now;
  const ofPrompt = prompt.inputTokens > 0 ? now : before;
  const ofAnswer = outputTokens > 0 ? now : before;
  const { outputTokens: _o, reasoningTokens: _r, ...kept } = ofPrompt;
  const thought = ofAnswer.reasoningTokens;
  return {
    ...kept,
    outputTokens: ofAnswer.outputTokens,
    ...(thought === undefined ? {} : { reasoningTokens: thought }),
  };
}

/** A usage whose numbers cannot be nothing: what is zero although there was a prompt, or an answer, is taken from the estimate. */
export function withoutZeros(usage: Usage, estimate: () => Usage): { usage: Usage; isReported: boolean } {
  if (usage.inputTokens > 0 && usage.outputTokens > 0) return { usage, isReported: true };
  const counted = estimate();
  const inputTokens = usage.inputTokens || counted.inputTokens;
  const outputTokens = usage.outputTokens || counted.outputTokens;
  const isReported = inputTokens === usage.inputTokens && outputTokens === usage.outputTokens;
  return isReported ? { usage, isReported } : { usage: { ...usage, inputTokens, outputTokens }, isReported };
}
