import type { ModelPrice, ModelType, ProviderModel } from "../model.ts";

const pageOf = (id: string) => `https://developers.openai.com/api/docs/models/${id}`;
const models = "https://developers.openai.com/api/docs/models";
/** Third parties that sell at, or report, OpenAI's list prices: named where OpenAI's own page was not at hand. */
const venice = (id: string) => `https://docs.venice.ai/models/${id}`;
const vercel = (id: string) => `https://vercel.com/ai-gateway/models/${id}`;
const plansOfMay = "https://github.com/api-evangelist/openai/blob/main/plans/openai-plans-pricing.yml";

const LONG_PROMPT_TOKENS = 272_000;
const BIG_WINDOW = 1_050_000;
/** Of the GPT-4.1 models (their model pages); later ones write 128,000 tokens. */
const MAX_OUTPUT_4_1 = { maxOutput: 32_768 };
/** They do not reason, and take any temperature. */
const PLAIN = { maxTemperature: 2 };
/** They reason only when asked to, and take a temperature as long as they do not ("Parameter compatibility"). */
const REASONS_WHEN_ASKED = { maxTemperature: 2, reasonsUnlessTold: true } as const;
/** They reason by default; Chat Completions has tools for them only with `reasoning_effort: "none"` (their model pages). */
const REASONS = { reasonsUnlessTold: true } as const;
/** They always reason, so that Chat Completions has no tools for them (their model pages know no effort `none`). */
const ALWAYS_REASONS = { features: ["streaming"] };

type Line = {
  id: string;
  name: string;
  type: ModelType;
  price: ModelPrice;
  priceSource: string;
} & Partial<ProviderModel>;

const gpt = (line: Line): ProviderModel => ({
  contextWindow: 400_000,
  maxOutput: 128_000,
  features: ["streaming", "tool_use"],
  batch: true,
  takesResponseFormat: true,
  priceDate: "2026-11-21",
  ...line,
});

/** Above 272,000 tokens the whole call costs twice as much for the prompt and one and a half times for the answer. */
const gptWithLongPrompts = (line: Line): ProviderModel => {
  const { input, output, cached } = line.price;
  const longPrompt = {
    aboveTokens: LONG_PROMPT_TOKENS,
    input: input * 2,
    output: output * 1.5,
    ...(cached === undefined ? {} : { cached: cached * 2 }),
  };
  return gpt({ contextWindow: BIG_WINDOW, longPrompt, ...line });
};

const embedding = (line: Omit<Line, "type">): ProviderModel =>
  gpt({
    type: "embedding",
    contextWindow: 8_191,
    maxOutput: 0,
    features: [],
    priceDate: "2024-01-25",
    ...line,
  });

/** Each line names the source of its price. Without those that OpenAI shuts down in 2026 (its page "Deprecations"): GPT-5, o3 and what is older. */
export const openAiModels: readonly ProviderModel[] = [
  gptWithLongPrompts({
    id: "gpt-6-astra",
    name: "GPT-6 Astra",
    type: "reasoning",
    price: { input: 10, output: 50, cached: 1 },
    priceSource: models,
    ...ALWAYS_REASONS,
  }),
  gptWithLongPrompts({
    id: "gpt-6.1-sol",
    name: "GPT-6.1 Sol",
    type: "coding",
    price: { input: 2, output: 10, cached: 0.1 },
    priceSource: "https://docs.litellm.ai/blog/gpt_6_1_sol",
    ...ALWAYS_REASONS,
  }),
  gptWithLongPrompts({
    id: "gpt-6.1-terra",
    name: "GPT-6.1 Terra",
    type: "coding",
    price: { input: 1, output: 5, cached: 0.05 },
    priceSource: "https://docs.litellm.ai/blog/gpt-6-1-terra",
    ...REASONS,
  }),
  gptWithLongPrompts({
    id: "gpt-6-sol",
    name: "GPT-6 Sol",
    type: "coding",
    price: { input: 2, output: 10, cached: 0.2 },
    priceSource: "https://github.com/merefield/codexometer/releases/tag/v0.18.4",
    ...REASONS,
  }),
  gptWithLongPrompts({
    id: "gpt-6-luna",
    name: "GPT-6 Luna",
    type: "chat",
    price: { input: 0.1, output: 0.5, cached: 0.01 },
    priceSource: pageOf("gpt-6-luna"),
    ...REASONS,
  }),
  gptWithLongPrompts({
    id: "gpt-5.6-sol",
    aliases: ["gpt-5.6"],
    name: "GPT-5.6 Sol",
    type: "reasoning",
    price: { input: 4, output: 20, cached: 0.4 },
    priceSource: models,
    ...REASONS,
  }),
  gptWithLongPrompts({
    id: "gpt-5.6-terra",
    name: "GPT-5.6 Terra",
    type: "coding",
    price: { input: 2, output: 12, cached: 0.2 },
    priceSource: models,
    ...REASONS,
  }),
  gptWithLongPrompts({
    id: "gpt-5.6-luna",
    name: "GPT-5.6 Luna",
    type: "chat",
    price: { input: 0.2, output: 1.2, cached: 0.02 },
    priceSource: models,
    ...REASONS,
  }),
  gptWithLongPrompts({
    id: "gpt-5.5",
    name: "GPT-5.5",
    type: "reasoning",
    price: { input: 5, output: 30, cached: 0.5 },
    priceSource: plansOfMay,
    priceDate: "2026-05-04",
    ...REASONS,
  }),
  gptWithLongPrompts({
    id: "gpt-5.4",
    name: "GPT-5.4",
    type: "reasoning",
    price: { input: 2.5, output: 15, cached: 0.25 },
    priceSource: plansOfMay,
    priceDate: "2026-05-04",
    ...REASONS_WHEN_ASKED,
  }),
  gpt({
    id: "gpt-5.4-mini",
    name: "GPT-5.4 mini",
    type: "coding",
    price: { input: 0.75, output: 4.5, cached: 0.075 },
    priceSource: plansOfMay,
    priceDate: "2026-05-04",
    ...REASONS_WHEN_ASKED,
  }),
  gpt({
    id: "gpt-5.4-nano",
    name: "GPT-5.4 nano",
    type: "chat",
    price: { input: 0.2, output: 1.25, cached: 0.02 },
    priceSource: plansOfMay,
    priceDate: "2026-05-04",
    ...REASONS_WHEN_ASKED,
  }),
  gpt({
    id: "gpt-5.2",
    name: "GPT-5.2",
    type: "reasoning",
    price: { input: 1.75, output: 14 },
    priceSource: venice("gpt-5-2"),
    ...REASONS_WHEN_ASKED,
  }),
  gpt({
    id: "gpt-4.1-mini",
    name: "GPT-4.1 mini",
    type: "chat",
    contextWindow: 1_047_576,
    ...MAX_OUTPUT_4_1,
    price: { input: 0.4, output: 1.6, cached: 0.1 },
    priceSource: vercel("gpt-4.1-mini"),
    ...PLAIN,
  }),
  gpt({
    id: "gpt-4.1",
    name: "GPT-4.1",
    type: "coding",
    contextWindow: 1_047_576,
    ...MAX_OUTPUT_4_1,
    price: { input: 2, output: 8, cached: 0.5 },
    priceSource: "https://gist.github.com/ei-grad/9a7c000f3487bc01221c7bb5e2b3d74a",
    priceDate: "2025-04-14",
    ...PLAIN,
  }),
  embedding({
    id: "text-embedding-3-small",
    name: "Text Embedding 3 Small",
    price: { input: 0.02, output: 0 },
    priceSource: "https://openai.com/index/new-embedding-models-and-api-updates/",
  }),
  embedding({
    id: "text-embedding-3-large",
    name: "Text Embedding 3 Large",
    price: { input: 0.13, output: 0 },
    priceSource: "https://openai.com/index/new-embedding-models-and-api-updates/",
  }),
];
