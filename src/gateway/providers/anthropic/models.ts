import { defined } from "../../../lib/defined.ts";
import { type ModelPrice, type ProviderModel, toModels } from "../model.ts";
import { DEFAULT_MAX_TOKENS } from "./request.ts";

const pricing = "https://platform.claude.com/docs/en/about-claude/pricing";
const pageOf = (name: string) => `https://platform.claude.com/docs/en/models/${name}/overview`;

/** "Images and vision": squares of 28 pixels, of which models from Claude 4.7 on see more (https://platform.claude.com/docs/en/build-with-claude/vision). */
const picturesOf = (most: number) => ({ side: 28, tokens: 1, most });
/**
 * From Claude 4.7 on (Haiku: 5.5) sampling parameters are refused (each model's migration guide); before, 0 to 1 is taken as
 * long as the model does not think, which it does only when asked to.
 */
const SAMPLING = { maxTemperature: 1, reasons: "when-asked", pictures: picturesOf(1_568) } as const;
/** The page "Effort": `xhigh` came with Opus 4.7, `max` with Opus 4.6; Haiku has efforts from 5.5 on. */
const EFFORTS = ["low", "medium", "high", "xhigh", "max"] as const;
const EFFORTS_OF_4_6 = ["none", "low", "medium", "high", "max"] as const;
/** Before, thinking has a budget, which is made of the effort. */
const EFFORTS_OF_4_5 = ["none", "low", "medium", "high"] as const;
/** Some cannot switch their thinking off, or refuse a demanded tool call ("What's new" of each). */
const features = ["streaming", "tool_use", "vision", "files", "json_schema", "prompt_caching"] as const;
const THINKS_ALWAYS = { efforts: EFFORTS };
/** Of the older models; from Opus 4.6 and Sonnet 5 on it is 128,000 tokens ("Max output" of the model pages). */
const OLD = { ...SAMPLING, maxOutput: 64_000 };
/** Before Claude 4.6. */
const SMALL = { ...OLD, contextWindow: 200_000 };

const claude = {
  contextWindow: 1_000_000,
  maxOutput: 128_000,
  defaultOutput: DEFAULT_MAX_TOKENS,
  features: [...features, "tool_choice"],
  pictures: picturesOf(4_784),
  settings: ["parallelToolCalls", "user", "safetyIdentifier", "serviceTier", "promptCacheKey"],
  efforts: ["none", ...EFFORTS],
  batch: true,
  priceDate: "2026-11-21",
} as const satisfies Partial<ProviderModel>;

/** Each row names the source of its price. The price of a cache write is that of the default cache, which lives for five minutes. */
const models = toModels(() => claude, {
  "claude-fable-5-1": ["Claude Fable 5.1", "reasoning", [10, 50, 0.25, 12.5], pricing, { features, ...THINKS_ALWAYS }],
  "claude-fable-5": ["Claude Fable 5", "reasoning", [10, 50, 1, 12.5], pricing, THINKS_ALWAYS],
  "claude-opus-5-5": [
    "Claude Opus 5.5",
    "reasoning",
    [4, 20, 0.2, 5],
    pageOf("opus-5-5"),
    { features, ...THINKS_ALWAYS },
  ],
  "claude-opus-5": ["Claude Opus 5", "reasoning", [5, 25, 0.5, 6.25], pageOf("opus-5")],
  "claude-opus-4-8": ["Claude Opus 4.8", "reasoning", [5, 25, 0.5, 6.25], pageOf("opus-4-8")],
  "claude-opus-4-7": ["Claude Opus 4.7", "reasoning", [5, 25, 0.5, 6.25], pricing],
  "claude-opus-4-6": [
    "Claude Opus 4.6",
    "reasoning",
    [5, 25, 0.5, 6.25],
    pageOf("opus-4-6"),
    { ...SAMPLING, efforts: EFFORTS_OF_4_6 },
  ],
  "claude-opus-4-5-20251101": [
    "Claude Opus 4.5",
    "reasoning",
    [5, 25, 0.5, 6.25],
    pageOf("opus-4-5"),
    { aliases: ["claude-opus-4-5"], ...SMALL, efforts: EFFORTS_OF_4_5 },
  ],
  "claude-sonnet-5-5": ["Claude Sonnet 5.5", "coding", [2, 10, 0.1, 2.5], pageOf("sonnet-5-5"), { features }],
  "claude-sonnet-5": ["Claude Sonnet 5", "coding", [2, 10, 0.2, 2.5], pageOf("sonnet-5")],
  "claude-sonnet-4-6": [
    "Claude Sonnet 4.6",
    "coding",
    [3, 15, 0.3, 3.75],
    pricing,
    { ...OLD, efforts: EFFORTS_OF_4_6 },
  ],
  "claude-haiku-5-5": [
    "Claude Haiku 5.5",
    "chat",
    [0.1, 0.5, 0.01, 0.125],
    pageOf("haiku-5-5"),
    { longPrompt: { aboveTokens: 100_000, input: 0.5, output: 2.5, cached: 0.05, cacheWrite: 0.625 } },
  ],
  "claude-haiku-4-5-20251001": [
    "Claude Haiku 4.5",
    "chat",
    [1, 5, 0.1, 1.25],
    "https://platform.claude.com/docs/en/models",
    { aliases: ["claude-haiku-4-5"], ...SMALL, efforts: EFFORTS_OF_4_5 },
  ],
});

/** What is kept for an hour costs twice the input ("Prompt caching", 1-hour cache). */
const withHourWrite = <P extends ModelPrice>(price: P): P => ({ ...price, hourWrite: 2 * price.input });

export const anthropicModels: readonly ProviderModel[] = models.map(({ price, longPrompt, ...model }) =>
  defined({ ...model, price: withHourWrite(price), longPrompt: longPrompt && withHourWrite(longPrompt) }),
);
