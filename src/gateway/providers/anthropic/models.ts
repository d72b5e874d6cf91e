import { type ProviderModel, toModels } from "../model.ts";
import { DEFAULT_MAX_TOKENS } from "./request.ts";

const pricing = "https://platform.claude.com/docs/en/about-claude/pricing";
const pageOf = (name: string) => `https://platform.claude.com/docs/en/models/${name}/overview`;

/** From Claude 4.7 on (Haiku: 5.5) sampling parameters are refused (each model's migration guide); before, 0 to 1 is taken. */
const SAMPLING = { maxTemperature: 1 };
/** Of the older models; from Opus 4.6 and Sonnet 5 on it is 128,000 tokens ("Max output" of the model pages). */
const OLD = { ...SAMPLING, maxOutput: 64_000 };
/** Before Claude 4.6. */
const SMALL = { ...OLD, contextWindow: 200_000 };

const claude = {
  contextWindow: 1_000_000,
  maxOutput: 128_000,
  defaultOutput: DEFAULT_MAX_TOKENS,
  features: ["streaming", "tool_use"],
  batch: true,
  priceDate: "2026-11-21",
} as const satisfies Partial<ProviderModel>;

/** Each row names the source of its price. The price of a cache write is that of the default cache, which lives for five minutes. */
export const anthropicModels: readonly ProviderModel[] = toModels(() => claude, {
  "claude-fable-5-1": { name: "Claude Fable 5.1", type: "reasoning", usd: [10, 50, 0.25, 12.5], priceSource: pricing },
  "claude-fable-5": { name: "Claude Fable 5", type: "reasoning", usd: [10, 50, 1, 12.5], priceSource: pricing },
  "claude-opus-5-5": {
    name: "Claude Opus 5.5",
    type: "reasoning",
    usd: [4, 20, 0.2, 5],
    priceSource: pageOf("opus-5-5"),
  },
  "claude-opus-5": { name: "Claude Opus 5", type: "reasoning", usd: [5, 25, 0.5, 6.25], priceSource: pageOf("opus-5") },
  "claude-opus-4-8": {
    name: "Claude Opus 4.8",
    type: "reasoning",
    usd: [5, 25, 0.5, 6.25],
    priceSource: pageOf("opus-4-8"),
  },
  "claude-opus-4-7": { name: "Claude Opus 4.7", type: "reasoning", usd: [5, 25, 0.5, 6.25], priceSource: pricing },
  "claude-opus-4-6": {
    name: "Claude Opus 4.6",
    type: "reasoning",
    usd: [5, 25, 0.5, 6.25],
    priceSource: pageOf("opus-4-6"),
    ...SAMPLING,
  },
  "claude-opus-4-5-20251101": {
    aliases: ["claude-opus-4-5"],
    name: "Claude Opus 4.5",
    type: "reasoning",
    usd: [5, 25, 0.5, 6.25],
    priceSource: pageOf("opus-4-5"),
    ...SMALL,
  },
  "claude-sonnet-5-5": {
    name: "Claude Sonnet 5.5",
    type: "coding",
    usd: [2, 10, 0.1, 2.5],
    priceSource: pageOf("sonnet-5-5"),
  },
  "claude-sonnet-5": {
    name: "Claude Sonnet 5",
    type: "coding",
    usd: [2, 10, 0.2, 2.5],
    priceSource: pageOf("sonnet-5"),
  },
  "claude-sonnet-4-6": {
    name: "Claude Sonnet 4.6",
    type: "coding",
    usd: [3, 15, 0.3, 3.75],
    priceSource: pricing,
    ...OLD,
  },
  "claude-haiku-5-5": {
    name: "Claude Haiku 5.5",
    type: "chat",
    usd: [0.1, 0.5, 0.01, 0.125],
    longPrompt: { aboveTokens: 100_000, input: 0.5, output: 2.5, cached: 0.05, cacheWrite: 0.625 },
    priceSource: pageOf("haiku-5-5"),
  },
  "claude-haiku-4-5-20251001": {
    aliases: ["claude-haiku-4-5"],
    name: "Claude Haiku 4.5",
    type: "chat",
    usd: [1, 5, 0.1, 1.25],
    priceSource: "https://platform.claude.com/docs/en/models",
    ...SMALL,
  },
});
