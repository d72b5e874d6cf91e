import { estimateMessageTokens } from "../gateway/count-tokens.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { CallLimit } from "../gateway/money/account.ts";
import type { Message } from "../gateway/providers/provider.ts";
import type { RunLimits } from "../store/agent-run-store.ts";
import type { AuditSpent } from "../store/audit-store.ts";
import { RunStopped } from "./run-state.ts";

/** What a run has used, and what is left of its limits. */
export type RunUsage = {
  /** Calls that failed or were cut count as far as their usage is known. */
  total(): AuditSpent;
  /** Counts what an earlier worker recorded. */
  recall(spent: AuditSpent): void;
  /** Tracks the usage of one step, which counts to the run too. */
  ofStep(): { limit: CallLimit; add(spent: AuditSpent): void; spent(): AuditSpent };
  /**
   * The longest answer that a call of these messages may have, in tokens; undefined without a limit.
   * @throws RunStopped when not even the prompt is left.
   */
  tokensLeft(model: string, messages: readonly Message[]): number | undefined;
  /** What is left for an agent that is called as a tool. */
  left(): Pick<RunLimits, "maxTokens" | "maxCostUsd">;
};

export function makeRunUsage(limits: RunLimits, gateway: Pick<Gateway, "findModel">): RunUsage {
  const total = { tokens: 0, costUsd: 0 };
  const { maxTokens, maxCostUsd } = limits;
  const count = (to: AuditSpent, { tokens, costUsd }: AuditSpent) => {
    to.tokens += tokens;
    to.costUsd += costUsd;
  };
  return {
    total: () => ({ tokens: total.tokens, costUsd: roundUsd(total.costUsd) }),
    recall: (spent) => count(total, spent),
    ofStep() {
      const own = { tokens: 0, costUsd: 0 };
      const add = (spent: AuditSpent) => {
        count(own, spent);
        count(total, spent);
      };
      return {
        add,
        spent: () => ({ tokens: own.tokens, costUsd: roundUsd(own.costUsd) }),
        limit: {
          check: () => undefined,
          spend: ({ usage, costUsd }) => add({ tokens: usage.inputTokens + usage.outputTokens, costUsd }),
        },
      };
    },
    tokensLeft(model, messages) {
      if (maxTokens === undefined && maxCostUsd === undefined) return undefined;
      const prompt = estimateMessageTokens(messages);
      const byTokens = maxTokens === undefined ? Number.POSITIVE_INFINITY : maxTokens - total.tokens - prompt;
      if (byTokens < 1) throw new RunStopped("max_tokens");
      const byCost =
        maxCostUsd === undefined ? Number.POSITIVE_INFINITY : affordable(maxCostUsd - total.costUsd, { model, prompt });
      if (byCost < 1) throw new RunStopped("max_cost");
      const least = Math.floor(Math.min(byTokens, byCost));
      return Number.isFinite(least) ? least : undefined;
    },
    left: () => ({
      ...(maxTokens === undefined ? {} : { maxTokens: Math.max(0, maxTokens - total.tokens) }),
      ...(maxCostUsd === undefined ? {} : { maxCostUsd: Math.max(0, roundUsd(maxCostUsd - total.costUsd)) }),
    }),
  };

  /** Tokens of an answer that this many USD pay for, beside the prompt. A model without a known price is only stopped after. */
  function affordable(usd: number, { model, prompt }: { model: string; prompt: number }): number {
    if (usd <= 0) return 0;
    const entry = gateway.findModel(model);
    if (entry === undefined || entry.outputCostPer1k === 0) return Number.POSITIVE_INFINITY;
    return ((usd - (prompt * entry.inputCostPer1k) / 1_000) / entry.outputCostPer1k) * 1_000;
  }
}

/** To billionths, as the ledger counts. */
function roundUsd(usd: number): number {
  return Math.round(usd * 1e9) / 1e9;
}
