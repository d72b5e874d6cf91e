import type { ProviderId } from "./providers/provider.ts";

/** What a model is mainly for; `auto` picks by it. Open-ended towards clients. */
export type ModelType = "chat" | "coding" | "reasoning" | "embedding";

/** Prices in USD for a million tokens, as providers print them. */
export type ModelPrice = { input: number; output: number };

export type CataloguedModel = {
  id: string;
  name: string;
  provider: ProviderId;
  type: ModelType;
  /** Tokens of prompt and answer together. */
  contextWindow: number;
  price: ModelPrice;
  /** Another price for the whole call when its prompt is longer than this many tokens. */
  longPrompt?: ModelPrice & { aboveTokens: number };
  features: readonly string[];
  /** Where the price was read, and when (ISO date). Nothing is charged without a price that can be traced. */
  priceSource: string;
  priceDate: string;
};

const claudePages = "https://platform.claude.com/docs/en/models";
const vercelPages = "https://vercel.com/ai-gateway/models";
const chatFeatures = ["streaming", "tool_use"];

/** The public models of the providers that take customers' keys. Prices change: each line tells where it comes from. */
export const publicModels: readonly CataloguedModel[] = [
  {
    id: "claude-fable-5-1",
    name: "Claude Fable 5.1",
    provider: "anthropic",
    type: "reasoning",
    contextWindow: 1_000_000,
    price: { input: 10, output: 50 },
    features: chatFeatures,
    priceSource: `${claudePages}/fable-5-1/overview`,
    priceDate: "2026-11-20",
  },
  {
    id: "claude-opus-5-5",
    name: "Claude Opus 5.5",
    provider: "anthropic",
    type: "reasoning",
    contextWindow: 1_000_000,
    price: { input: 4, output: 20 },
    features: chatFeatures,
    priceSource: `${claudePages}/opus-5-5/overview`,
    priceDate: "2026-11-20",
  },
  {
    id: "claude-sonnet-5-5",
    name: "Claude Sonnet 5.5",
    provider: "anthropic",
    type: "coding",
    contextWindow: 1_000_000,
    price: { input: 2, output: 10 },
    features: chatFeatures,
    priceSource: `${claudePages}/sonnet-5-5/overview`,
    priceDate: "2026-11-20",
  },
  {
    id: "claude-haiku-5-5",
    name: "Claude Haiku 5.5",
    provider: "anthropic",
    type: "chat",
    contextWindow: 1_000_000,
    price: { input: 0.1, output: 0.5 },
    longPrompt: { aboveTokens: 100_000, input: 0.5, output: 2.5 },
    features: chatFeatures,
    priceSource: `${claudePages}/haiku-5-5/overview`,
    priceDate: "2026-11-20",
  },
  {
    id: "gpt-6-astra",
    name: "GPT-6 Astra",
    provider: "openai",
    type: "reasoning",
    contextWindow: 1_050_000,
    price: { input: 10, output: 50 },
    features: chatFeatures,
    priceSource: "https://docs.venice.ai/models/gpt-6-1-sol-ultrafast",
    priceDate: "2026-11-20",
  },
  {
    id: "gpt-6.1-sol",
    name: "GPT-6.1 Sol",
    provider: "openai",
    type: "coding",
    contextWindow: 1_050_000,
    price: { input: 2, output: 10 },
    longPrompt: { aboveTokens: 272_000, input: 4, output: 15 },
    features: chatFeatures,
    priceSource: "https://ngrok.com/changelog/ai-gateway-gpt-6-1-sol",
    priceDate: "2026-11-20",
  },
  {
    id: "gpt-5.4-mini",
    name: "GPT-5.4 mini",
    provider: "openai",
    type: "coding",
    contextWindow: 400_000,
    price: { input: 0.75, output: 4.5 },
    features: chatFeatures,
    priceSource: "https://docs.venice.ai/models/gpt-5-4-mini",
    priceDate: "2026-11-20",
  },
  {
    id: "gpt-5.4-nano",
    name: "GPT-5.4 nano",
    provider: "openai",
    type: "chat",
    contextWindow: 400_000,
    price: { input: 0.2, output: 1.25 },
    features: chatFeatures,
    priceSource: `${vercelPages}/gpt-5.4-nano`,
    priceDate: "2026-11-20",
  },
  {
    id: "text-embedding-3-small",
    name: "Text Embedding 3 Small",
    provider: "openai",
    type: "embedding",
    contextWindow: 8_191,
    price: { input: 0.02, output: 0 },
    features: [],
    priceSource: "https://openai.com/index/new-embedding-models-and-api-updates/",
    priceDate: "2024-01-25",
  },
  {
    id: "text-embedding-3-large",
    name: "Text Embedding 3 Large",
    provider: "openai",
    type: "embedding",
    contextWindow: 8_191,
    price: { input: 0.13, output: 0 },
    features: [],
    priceSource: "https://openai.com/index/new-embedding-models-and-api-updates/",
    priceDate: "2024-01-25",
  },
];
