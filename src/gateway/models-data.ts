import { anthropicModels } from "./models-anthropic.ts";
import { openAiModels } from "./models-openai.ts";
import type { ProviderId } from "./providers/provider.ts";

/** What a model is mainly for; `auto` picks by it. Open-ended towards clients. */
export type ModelType = "chat" | "coding" | "reasoning" | "embedding";

/** Prices in USD for a million tokens, as providers print them; without one of their own, cached tokens cost as others do. */
export type ModelPrice = { input: number; output: number; cached?: number; cacheWrite?: number };

export type CataloguedModel = {
  /** As the provider names it. */
  id: string;
  /** Other names of it, as the provider takes them too. */
  aliases?: readonly string[];
  name: string;
  provider: ProviderId;
  type: ModelType;
  /** Tokens of prompt and answer together. */
  contextWindow: number;
  /** Tokens of the longest answer that is reserved for; never more than its provider documents, thinking included. */
  maxOutput: number;
  /** Tokens that an answer is limited to when nobody says, because the API demands a limit. */
  defaultOutput?: number;
  price: ModelPrice;
  /** Another price for the whole call when its prompt is longer than this many tokens. */
  longPrompt?: ModelPrice & { aboveTokens: number };
  features: readonly string[];
  /** Whether its provider takes it in batches, at half the price. */
  batch?: true;
  /** The highest temperature that it takes. Without it the model refuses any but the default, 1. */
  maxTemperature?: number;
  /** It calls tools, or takes a temperature, only when it is told not to reason (OpenAI's `reasoning_effort: "none"`). */
  reasonsUnlessTold?: true;
  /** It only stands in for a real model: `auto` takes it when there is no other. */
  isStandIn?: true;
  /** Where the price was read, and when (ISO date). Nothing is charged without a price that can be traced. */
  priceSource: string;
  priceDate: string;
};

/** The public models of the providers that take customers' keys. Prices change: each line tells where it comes from. */
export const publicModels: readonly CataloguedModel[] = [...anthropicModels, ...openAiModels];
