import type { ModelPrice, ModelType, ProviderModel } from "../model.ts";
import { DEFAULT_MAX_TOKENS } from "./request.ts";

const pricing = "https://platform.claude.com/docs/en/about-claude/pricing";
const pageOf = (name: string) => `https://platform.claude.com/docs/en/models/${name}/overview`;

/** From Claude 4.7 on (Haiku: 5.5) sampling parameters are refused (each model's migration guide); before, 0 to 1 is taken. */
const SAMPLING = { maxTemperature: 1 };
/** Of the older models; from Opus 4.6 and Sonnet 5 on it is 128,000 tokens ("Max output" of the model pages). */
const OLD_MAX_OUTPUT = { maxOutput: 64_000 };

type Line = {
  id: string;
  name: string;
  type: ModelType;
  price: ModelPrice;
  priceSource: string;
} & Partial<ProviderModel>;

const claude = (line: Line): ProviderModel => ({
  contextWindow: 1_000_000,
  maxOutput: 128_000,
  defaultOutput: DEFAULT_MAX_TOKENS,
  features: ["streaming", "tool_use"],
  batch: true,
  priceDate: "2026-11-21",
  ...line,
});

/** Each line names the source of its price. `cacheWrite` is the price of the default cache, which lives for five minutes. */
export const anthropicModels: readonly ProviderModel[] = [
  claude({
    id: "claude-fable-5-1",
    name: "Claude Fable 5.1",
    type: "reasoning",
    price: { input: 10, output: 50, cached: 0.25, cacheWrite: 12.5 },
    priceSource: pricing,
  }),
  claude({
    id: "claude-fable-5",
    name: "Claude Fable 5",
    type: "reasoning",
    price: { input: 10, output: 50, cached: 1, cacheWrite: 12.5 },
    priceSource: pricing,
  }),
  claude({
    id: "claude-opus-5-5",
    name: "Claude Opus 5.5",
    type: "reasoning",
    price: { input: 4, output: 20, cached: 0.2, cacheWrite: 5 },
    priceSource: pageOf("opus-5-5"),
  }),
  claude({
    id: "claude-opus-5",
    name: "Claude Opus 5",
    type: "reasoning",
    price: { input: 5, output: 25, cached: 0.5, cacheWrite: 6.25 },
    priceSource: pageOf("opus-5"),
  }),
  claude({
    id: "claude-opus-4-8",
    name: "Claude Opus 4.8",
    type: "reasoning",
    price: { input: 5, output: 25, cached: 0.5, cacheWrite: 6.25 },
    priceSource: pageOf("opus-4-8"),
  }),
  claude({
    id: "claude-opus-4-7",
    name: "Claude Opus 4.7",
    type: "reasoning",
    price: { input: 5, output: 25, cached: 0.5, cacheWrite: 6.25 },
    priceSource: pricing,
  }),
  claude({
    id: "claude-opus-4-6",
    name: "Claude Opus 4.6",
    type: "reasoning",
    price: { input: 5, output: 25, cached: 0.5, cacheWrite: 6.25 },
    priceSource: pageOf("opus-4-6"),
    ...SAMPLING,
  }),
  claude({
    id: "claude-opus-4-5-20251101",
    aliases: ["claude-opus-4-5"],
    name: "Claude Opus 4.5",
    type: "reasoning",
    contextWindow: 200_000,
    ...OLD_MAX_OUTPUT,
    price: { input: 5, output: 25, cached: 0.5, cacheWrite: 6.25 },
    priceSource: pageOf("opus-4-5"),
    ...SAMPLING,
  }),
  claude({
    id: "claude-sonnet-5-5",
    name: "Claude Sonnet 5.5",
    type: "coding",
    price: { input: 2, output: 10, cached: 0.1, cacheWrite: 2.5 },
    priceSource: pageOf("sonnet-5-5"),
  }),
  claude({
    id: "claude-sonnet-5",
    name: "Claude Sonnet 5",
    type: "coding",
    price: { input: 2, output: 10, cached: 0.2, cacheWrite: 2.5 },
    priceSource: pageOf("sonnet-5"),
  }),
  claude({
    id: "claude-sonnet-4-6",
    name: "Claude Sonnet 4.6",
    type: "coding",
    price: { input: 3, output: 15, cached: 0.3, cacheWrite: 3.75 },
    priceSource: pricing,
    ...OLD_MAX_OUTPUT,
    ...SAMPLING,
  }),
  claude({
    id: "claude-haiku-5-5",
    name: "Claude Haiku 5.5",
    type: "chat",
    price: { input: 0.1, output: 0.5, cached: 0.01, cacheWrite: 0.125 },
    longPrompt: { aboveTokens: 100_000, input: 0.5, output: 2.5, cached: 0.05, cacheWrite: 0.625 },
    priceSource: pageOf("haiku-5-5"),
  }),
  claude({
    id: "claude-haiku-4-5-20251001",
    aliases: ["claude-haiku-4-5"],
    name: "Claude Haiku 4.5",
    type: "chat",
    contextWindow: 200_000,
    ...OLD_MAX_OUTPUT,
    price: { input: 1, output: 5, cached: 0.1, cacheWrite: 1.25 },
    priceSource: "https://platform.claude.com/docs/en/models",
    ...SAMPLING,
  }),
];
