import type { CataloguedModel } from "../catalogue.ts";
import { estimateTokens } from "../count-tokens.ts";
import type { Served, Usage } from "../providers/provider.ts";
import { toNanoUsd } from "./prices.ts";

/** What tries cost that the provider worked on and that brought no answer. */
export type LostTries = {
  add(served: Served): void;
  /** The sum of all of them; undefined when there were none. */
  sum(): { usage: Usage; nanoUsd: number } | undefined;
};

/**
 * Adds up lost tries of one call: the provider's own count where it told one, else the prompt's estimate, `inputTokens`,
 * and what had been said. Each is priced by itself, since a price can depend on a prompt's length.
 */
export function makeLostTries(model: CataloguedModel, inputTokens: () => number): LostTries {
  let sum: { usage: Usage; nanoUsd: number } | undefined;
  return {
    add({ usage: told, promptUsage, text = "" }) {
      const prompt = promptUsage ?? { inputTokens: inputTokens() };
      const usage = told ?? { ...prompt, outputTokens: estimateTokens(text) };
      const nanoUsd = toNanoUsd(model, usage);
      sum = sum ? { usage: addUsage(sum.usage, usage), nanoUsd: sum.nanoUsd + nanoUsd } : { usage, nanoUsd };
    },
    sum: () => sum,
  };
}

export function addUsage(one: Usage, other: Usage): Usage {
  const cachedTokens = (one.cachedTokens ?? 0) + (other.cachedTokens ?? 0);
  const cacheWriteTokens = (one.cacheWriteTokens ?? 0) + (other.cacheWriteTokens ?? 0);
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    ...(cachedTokens > 0 ? { cachedTokens } : {}),
    ...(cacheWriteTokens > 0 ? { cacheWriteTokens } : {}),
  };
}
