import type { CataloguedModel } from "../catalogue.ts";
import type { Served, Usage } from "../providers/provider.ts";
import { estimateTokens } from "../tokens.ts";
import { plausible, toNanoUsd } from "./prices.ts";

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
