import type { CataloguedModel } from "../catalogue.ts";
import type { ModelPrice } from "../providers/model.ts";
import type { CompletionRequest, Served, Usage } from "../providers/provider.ts";
import { boundPromptTokens, boundTokens, estimateTokens } from "../tokens.ts";

/** Shortest answer for which a call is worth its price, in tokens, unless the caller wants a shorter one. */
const LEAST_ANSWER = 1_024;
/** Price of the tier `flex` as a share of the usual price. */
const FLEX_PRICE = 0.5;
/** Prices are whole billionths, so that an amount can miss a token's price by a fraction. */
const ROUNDING_TOKENS = 0.01;

/**
 * The price of a call in billionths of a US dollar: USD a million tokens is a thousand of them a token. Tokens that the
 * provider read from its cache, or wrote to it, have their own price where the catalogue knows one.
 */
export function toNanoUsd(model: CataloguedModel, usage: Usage): number {
  const isLong = model.longPrompt !== undefined && usage.inputTokens > model.longPrompt.aboveTokens;
  const price: ModelPrice = isLong && model.longPrompt ? model.longPrompt : model.price;
  const { inputTokens, outputTokens, cachedTokens = 0, cacheWriteTokens = 0, hourWriteTokens = 0 } = usage;
  const cacheWrite = price.cacheWrite ?? price.input;
  const usd =
    (inputTokens - cachedTokens - cacheWriteTokens) * price.input +
    cachedTokens * (price.cached ?? price.input) +
    (cacheWriteTokens - hourWriteTokens) * cacheWrite +
    hourWriteTokens * (price.hourWrite ?? cacheWrite) +
    outputTokens * price.output;
  return Math.round(usd * 1_000 * (usage.isFlex && model.flex ? FLEX_PRICE : 1));
}

/** Highest token count of a call that is believed. */
const MAX_COUNT = 100_000_000;
const isCount = (tokens: number) => Number.isInteger(tokens) && tokens >= 0 && tokens <= MAX_COUNT;

/** A usage as a server reported it; undefined if it is impossible, since the server may belong to a tenant. */
export function plausible(usage: Usage | undefined): Usage | undefined {
  if (usage === undefined) return undefined;
  const { inputTokens, outputTokens, cachedTokens = 0, cacheWriteTokens = 0, hourWriteTokens = 0 } = usage;
  const isPossible =
    isCount(inputTokens) &&
    isCount(outputTokens) &&
    isCount(cachedTokens) &&
    isCount(cacheWriteTokens) &&
    isCount(hourWriteTokens) &&
    hourWriteTokens <= cacheWriteTokens &&
    cachedTokens + cacheWriteTokens <= inputTokens;
  return isPossible ? usage : undefined;
}

export const toUsd = (nanoUsd: number) => nanoUsd / 1e9;

/** What a call may cost, in billionths of a US dollar. The prompt is counted as long as it can be. */
export type CostBounds = {
  /** With the longest answer that the model can give, regardless of the limit that was requested. */
  mostNanoUsd: number;
  /** With the requested limit, or the model's longest answer if none was requested. */
  askedNanoUsd: number;
  /** With the shortest answer that is worth the call. */
  leastNanoUsd: number;
  /** The longest answer that an amount pays for, in tokens. It never exceeds the requested limit. */
  answerFor(nanoUsd: number): number;
  /** The longest answer that is to be expected, and the shortest that is worth the call, in tokens. */
  asked: number;
  least: number;
  /** What the call costs with an answer of so many tokens, in billionths of a US dollar. */
  priceOf(answer: number): number;
};

/** `promptTokens` is the length of a prompt that cannot be read. */
export function boundChat(
  model: CataloguedModel,
  request: CompletionRequest,
  promptTokens = boundPromptTokens(request, model),
): CostBounds {
  const inputTokens = Math.min(promptTokens, model.contextWindow);
  // A provider may write all of the prompt to its cache, which is what costs most.
  const priceOf = (outputTokens: number) =>
    toNanoUsd(model, { inputTokens, outputTokens, cacheWriteTokens: inputTokens });
  const asked = request.maxTokens ?? model.defaultOutput ?? model.maxOutput;
  const least = Math.min(asked, LEAST_ANSWER);
  const longest = Math.max(asked, model.maxOutput);
  const tokenNanoUsd = (priceOf(longest) - priceOf(0)) / longest;
  return {
    mostNanoUsd: priceOf(longest),
    askedNanoUsd: priceOf(request.maxTokens ?? longest),
    leastNanoUsd: priceOf(least),
    answerFor: (nanoUsd) => Math.min(asked, Math.floor((nanoUsd - priceOf(0)) / tokenNanoUsd + ROUNDING_TOKENS)),
    ...{ asked, least, priceOf },
  };
}

export function boundEmbedding(model: CataloguedModel, input: readonly string[]): CostBounds {
  const inputTokens = input.reduce((sum, text) => sum + Math.min(boundTokens(text), model.contextWindow), 0);
  const nanoUsd = toNanoUsd(model, { inputTokens, outputTokens: 0 });
  const answer = { answerFor: () => 0, asked: 0, least: 0, priceOf: () => nanoUsd };
  return { mostNanoUsd: nanoUsd, askedNanoUsd: nanoUsd, leastNanoUsd: nanoUsd, ...answer };
}

/** What the billed failed attempts of a call used and cost; undefined when there were none. */
export type BilledAttempts = { usage: Usage; nanoUsd: number } | undefined;

/**
 * Adds up the billed failed attempts of one call: the provider's own count where it reported one, else the prompt's
 * estimate, `inputTokens`, and what had been said. Each is priced by itself, since a price can depend on a prompt's length.
 */
export function makeFailedAttempts(model: CataloguedModel, inputTokens: () => number) {
  let sum: BilledAttempts;
  return {
    add({ usage: reported, promptUsage, text = "" }: Served): void {
      const prompt = plausible(promptUsage) ?? { inputTokens: inputTokens() };
      const usage = plausible(reported) ?? { ...prompt, outputTokens: estimateTokens(text) };
      const nanoUsd = toNanoUsd(model, usage);
      sum = sum ? { usage: addUsage(sum.usage, usage), nanoUsd: sum.nanoUsd + nanoUsd } : { usage, nanoUsd };
    },
    sum: () => sum,
  };
}

export function addUsage(one: Usage, other: Usage): Usage {
  const cachedTokens = (one.cachedTokens ?? 0) + (other.cachedTokens ?? 0);
  const cacheWriteTokens = (one.cacheWriteTokens ?? 0) + (other.cacheWriteTokens ?? 0);
  const hourWriteTokens = (one.hourWriteTokens ?? 0) + (other.hourWriteTokens ?? 0);
  const reasoningTokens = (one.reasoningTokens ?? 0) + (other.reasoningTokens ?? 0);
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    ...(cachedTokens > 0 ? { cachedTokens } : {}),
    ...(cacheWriteTokens > 0 ? { cacheWriteTokens } : {}),
    ...(hourWriteTokens > 0 ? { hourWriteTokens } : {}),
    ...(reasoningTokens > 0 ? { reasoningTokens } : {}),
  };
}
