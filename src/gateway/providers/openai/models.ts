import { defined } from "../../../lib/defined.ts";
import {
  type ModelPrice,
  type PictureRule,
  type ProviderModel,
  type Setting,
  settingFields,
  toModels,
  wordSettings,
} from "../model.ts";

const pageOf = (id: string) => `https://developers.openai.com/api/docs/models/${id}`;
const models = "https://developers.openai.com/api/docs/models";
/** Third parties that sell at, or report, OpenAI's list prices: named where OpenAI's own page was not at hand. */
const venice = (id: string) => `https://docs.venice.ai/models/${id}`;
const vercel = (id: string) => `https://vercel.com/ai-gateway/models/${id}`;
const litellm = (page: string) => `https://docs.litellm.ai/blog/${page}`;
const codexometer = "https://github.com/merefield/codexometer/releases/tag/v0.18.4";
const announcement = "https://openai.com/index/new-embedding-models-and-api-updates/";
const gistOfApril = {
  priceSource: "https://gist.github.com/ei-grad/9a7c000f3487bc01221c7bb5e2b3d74a",
  priceDate: "2025-04-14",
};
const plansOfMay = {
  priceSource: "https://github.com/api-evangelist/openai/blob/main/plans/openai-plans-pricing.yml",
  priceDate: "2026-05-04",
};

/** `verbosity` came with GPT-5. `seed` is deprecated, and the Responses API has none. */
const settings = Object.keys(settingFields) as Setting[]; // the literal has no other keys
const ofReasoning = settings.filter((setting) => setting !== "seed" && !wordSettings.some((one) => one === setting));
const withoutVerbosity = settings.filter((setting) => setting !== "verbosity");

/**
 * "Images and vision", "Calculating costs" (https://developers.openai.com/api/docs/guides/images-vision): squares of 32 pixels;
 * `low` fits into 512 pixels. GPT-4.1 counts tiles.
 */
const picturesOf = (tokens: number, most: number, mostOf: PictureRule["mostOf"] = {}): PictureRule => ({
  side: 32,
  tokens,
  most,
  mostOf: { low: 256, ...mostOf },
});
const TILES = { side: 512, tokens: 170, base: 85, most: 8, mostOf: { low: 0 } };

const LONG_PROMPT_TOKENS = 272_000;
const BIG_WINDOW = 1_050_000;
/** The GPT-4.1 models (their model pages): they do not reason, and take any temperature. */
const PLAIN = { contextWindow: 1_047_576, maxOutput: 32_768, maxTemperature: 2, settings: withoutVerbosity };
/** The efforts of each model are those of its page. */
const EFFORTS_TO_XHIGH = ["none", "low", "medium", "high", "xhigh"] as const;
const EFFORTS_TO_MAX = [...EFFORTS_TO_XHIGH, "max"] as const;
/** They reason only when asked to, and take a temperature as long as they do not ("Parameter compatibility"). */
const REASONS_WHEN_ASKED = { reasons: "when-asked", flex: true, maxTemperature: 2, efforts: EFFORTS_TO_XHIGH } as const;
const REASONS = { reasons: "by-default", flex: true, efforts: EFFORTS_TO_MAX } as const;
const ALWAYS_REASONS = { ...REASONS, efforts: ["low", "medium", "high", "xhigh", "max"] } as const;

const common = {
  contextWindow: 400_000,
  maxOutput: 128_000,
  features: ["streaming", "tool_use", "tool_choice", "vision", "files", "json_schema", "json_object", "prompt_caching"],
  pictures: picturesOf(1.2, 1_536),
  settings: ofReasoning,
  takesAllowedTools: true,
  priceDate: "2026-11-21",
} as const satisfies Partial<ProviderModel>;

const gpt = { ...common, batch: true } as const;

/** Above 272,000 tokens the whole call costs twice as much for the prompt and one and a half times for the answer. */
const withLongPrompts = ({ input, output, cached, cacheWrite }: ModelPrice) => {
  const cache = { cached: cached && cached * 2, cacheWrite: cacheWrite && cacheWrite * 2 };
  const longPrompt = { aboveTokens: LONG_PROMPT_TOKENS, input: input * 2, output: output * 1.5, ...cache };
  const pictures = picturesOf(1.2, 30_000, { high: 2_500 });
  return { ...gpt, pictures, contextWindow: BIG_WINDOW, longPrompt: defined(longPrompt) };
};

const embedding = {
  ...common,
  contextWindow: 8_191,
  maxOutput: 0,
  features: [],
  settings: [],
  priceDate: "2024-01-25",
};

/**
 * Each row names the source of its price. From GPT-5.6 on, a cache write costs 1.25 times the input (guide "Prompt caching").
 * Without those that OpenAI shuts down in 2026 (its page "Deprecations"): GPT-5, o3 and what is older.
 */
export const openAiModels: readonly ProviderModel[] = [
  ...toModels(withLongPrompts, {
    "gpt-6-astra": ["GPT-6 Astra", "reasoning", [10, 50, 1, 12.5], models, ALWAYS_REASONS],
    "gpt-6.1-sol": ["GPT-6.1 Sol", "coding", [2, 10, 0.1, 2.5], litellm("gpt_6_1_sol"), ALWAYS_REASONS],
    "gpt-6.1-terra": ["GPT-6.1 Terra", "coding", [1, 5, 0.05, 1.25], litellm("gpt-6-1-terra"), REASONS],
    "gpt-6-sol": ["GPT-6 Sol", "coding", [2, 10, 0.2, 2.5], codexometer, REASONS],
    "gpt-6-luna": ["GPT-6 Luna", "chat", [0.1, 0.5, 0.01, 0.125], pageOf("gpt-6-luna"), REASONS],
    "gpt-5.6-sol": ["GPT-5.6 Sol", "reasoning", [4, 20, 0.4, 5], models, { aliases: ["gpt-5.6"], ...REASONS }],
    "gpt-5.6-terra": ["GPT-5.6 Terra", "coding", [2, 12, 0.2, 2.5], models, REASONS],
    "gpt-5.6-luna": ["GPT-5.6 Luna", "chat", [0.2, 1.2, 0.02, 0.25], models, REASONS],
    "gpt-5.5": [
      "GPT-5.5",
      "reasoning",
      [5, 30, 0.5],
      plansOfMay,
      { ...REASONS, efforts: EFFORTS_TO_XHIGH, pictures: picturesOf(1.2, 10_000, { high: 2_500 }) },
    ],
    "gpt-5.4": [
      "GPT-5.4",
      "reasoning",
      [2.5, 15, 0.25],
      plansOfMay,
      { ...REASONS_WHEN_ASKED, pictures: picturesOf(1.2, 2_500, { original: 10_000 }) },
    ],
  }),
  ...toModels(() => gpt, {
    "gpt-5.4-mini": [
      "GPT-5.4 mini",
      "coding",
      [0.75, 4.5, 0.075],
      plansOfMay,
      { ...REASONS_WHEN_ASKED, pictures: picturesOf(1.62, 1_536) },
    ],
    "gpt-5.4-nano": [
      "GPT-5.4 nano",
      "chat",
      [0.2, 1.25, 0.02],
      plansOfMay,
      { ...REASONS_WHEN_ASKED, pictures: picturesOf(2.46, 1_536) },
    ],
    "gpt-5.2": ["GPT-5.2", "reasoning", [1.75, 14], venice("gpt-5-2"), REASONS_WHEN_ASKED],
    "gpt-4.1-mini": [
      "GPT-4.1 mini",
      "chat",
      [0.4, 1.6, 0.1],
      vercel("gpt-4.1-mini"),
      { ...PLAIN, pictures: picturesOf(1.62, 1_536) },
    ],
    "gpt-4.1": ["GPT-4.1", "coding", [2, 8, 0.5], gistOfApril, { ...PLAIN, pictures: TILES }],
  }),
  ...toModels(() => embedding, {
    "text-embedding-3-small": ["Text Embedding 3 Small", "embedding", [0.02, 0], announcement],
    "text-embedding-3-large": ["Text Embedding 3 Large", "embedding", [0.13, 0], announcement],
  }),
];
