import { defined } from "../../lib/defined.ts";
import type { ImagePart, Message } from "../messages.ts";

/** What a model is mainly for; `auto` picks by it. Open-ended towards clients. */
export type ModelType = "chat" | "coding" | "reasoning" | "embedding" | "rerank";
/** What models that do not chat are for. */
const otherTypes: ReadonlySet<ModelType> = new Set(["embedding", "rerank"]);
export const chats = ({ type }: { type: ModelType }) => !otherTypes.has(type);

/** How much a model is to reason, from not at all to its most. Each model takes some of them. */
export const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
export type Effort = (typeof efforts)[number];

/** What a model can do besides texts. A request that needs what its model lacks is rejected. */
export const features = [
  "streaming",
  "tool_use",
  /** `tool_choice` may demand a call. */
  "tool_choice",
  "vision",
  /** PDFs. */
  "files",
  /** It keeps to a `response_format` with a schema, or writes any JSON. */
  "json_schema",
  "json_object",
  /** Its provider reads a prompt that begins as an earlier one did from a cache, at a lower price. */
  "prompt_caching",
] as const;
export type Feature = (typeof features)[number];

/** Settings that do not change what is asked for, by their names here and in a request: a model may take them or not. */
export const settingFields = {
  seed: "seed",
  verbosity: "verbosity",
  parallelToolCalls: "parallel_tool_calls",
  metadata: "metadata",
  user: "user",
  safetyIdentifier: "safety_identifier",
  serviceTier: "service_tier",
  promptCacheKey: "prompt_cache_key",
  presencePenalty: "presence_penalty",
  frequencyPenalty: "frequency_penalty",
  logitBias: "logit_bias",
  prediction: "prediction",
  logprobs: "logprobs",
  topLogprobs: "top_logprobs",
} as const;
/** Those that shape which words come next, as models that reason do not take them. */
export const wordSettings = [
  "presencePenalty",
  "frequencyPenalty",
  "logitBias",
  "prediction",
  "logprobs",
  "topLogprobs",
] as const satisfies readonly (keyof typeof settingFields)[];
export type Setting = keyof typeof settingFields;

/** Prices in USD for a million tokens, as providers print them; without one of their own, cached tokens cost as others do. */
export type ModelPrice = {
  input: number;
  output: number;
  cached?: number;
  cacheWrite?: number;
  /** Of what is kept for an hour. */
  hourWrite?: number;
};

/**
 * How a model counts a picture: by the squares of `side` pixels that cover it, `tokens` each, and `base` once. One with more
 * than `most` is scaled down to so many, or to the number of its `detail`.
 */
export type PictureRule = {
  side: number;
  tokens: number;
  base?: number;
  most: number;
  mostOf?: Partial<Record<NonNullable<ImagePart["detail"]>, number>>;
};

/** What of a request decides by which of its interfaces a provider is asked. */
export type Asking = {
  messages: readonly Message[];
  metadata?: object;
  tools?: readonly object[];
  reasoningSummary?: string;
  canReason?: true;
  effort?: Effort;
};

/** A model as its provider offers it. */
export type ProviderModel = {
  /** As it is asked for: what the provider names it, unless there is a `wireId`. */
  id: string;
  /** As its provider names it, where that is not the id. */
  wireId?: string;
  /** Other names of it, as the provider takes them too. */
  aliases?: readonly string[];
  name: string;
  type: ModelType;
  /** Tokens of prompt and answer together. */
  contextWindow: number;
  /** Tokens of the longest answer that is reserved for; never more than its provider documents, thinking included. */
  maxOutput: number;
  /** The limit of an answer in tokens where the request names none, because the API demands one. */
  defaultOutput?: number;
  price: ModelPrice;
  /** Another price for the whole call when its prompt is longer than this many tokens. */
  longPrompt?: ModelPrice & { aboveTokens: number };
  features: readonly Feature[];
  /** How it counts pictures, where that is documented. */
  pictures?: PictureRule;
  /** In their order; a model without them takes no `reasoning_effort`. */
  efforts?: readonly Effort[];
  settings: readonly Setting[];
  /** Those that it takes with a request; default: all of them. */
  settingsWith?: (request: Asking) => readonly Setting[];
  /** Its provider takes it at `service_tier: flex`, at half the price (OpenAI's guide "Flex processing"). */
  flex?: true;
  /** Its provider takes `allowed_tools`, which keeps all tools in its cache; others are offered the allowed ones alone. */
  takesAllowedTools?: true;
  /** Its provider takes it in batches, at half the price. */
  batch?: true;
  /** The highest temperature that it takes. Without it the model refuses any but the default, 1. */
  maxTemperature?: number;
  /** When a model with a temperature or OpenAI's reasons: unless asked for effort `none`, or only when asked for another. */
  reasons?: "by-default" | "when-asked";
  /** It only replaces a real model: `auto` takes it when there is no other. */
  isStub?: true;
  /** Where the price was read, and when (ISO date). Nothing is charged without a price that can be traced. */
  priceSource: string;
  priceDate: string;
};

/**
 * A row of a provider's table of models: its prices in the order of `ModelPrice`, where they were read (and when, if not at
 * the table's date), and what differs from the table's defaults.
 */
type ModelRow = readonly [
  name: string,
  type: ModelType,
  usd: readonly [input: number, output: number, cached?: number, cacheWrite?: number],
  source: string | Pick<ProviderModel, "priceSource" | "priceDate">,
  more?: Partial<ProviderModel>,
];

/** The models of a table by their ids. */
export function toModels(
  defaults: (
    price: ModelPrice,
  ) => Pick<ProviderModel, "contextWindow" | "maxOutput" | "features" | "settings" | "priceDate">,
  rows: Readonly<Record<string, ModelRow>>,
): ProviderModel[] {
  return Object.entries(rows).map(([id, [name, type, [input, output, cached, cacheWrite], from, more]]) => {
    const price = defined({ input, output, cached, cacheWrite });
    const source = typeof from === "string" ? { priceSource: from } : from;
    return { ...defaults(price), id, name, type, price, ...source, ...more };
  });
}
