import { makeUsageTracker } from "../definitions/runs.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { Message } from "../gateway/messages.ts";
import { estimateMessageTokens } from "../gateway/tokens.ts";
import type { RunLimits } from "../store/agent-run-store.ts";
import { RunStopped } from "./run-state.ts";

const UNLIMITED = Number.POSITIVE_INFINITY;

type RunOfTenant = { tenantId: string; limits: RunLimits };
export type RunUsage = ReturnType<typeof makeRunUsage>;

/** What a run has used, and what is left of its limits. Calls that failed or were cut count as far as their usage is known. */
export function makeRunUsage({ tenantId, limits }: RunOfTenant, gateway: Pick<Gateway, "findModel">) {
  const { add, spent: total } = makeUsageTracker();
  const { maxTokens = UNLIMITED, maxCostUsd = UNLIMITED } = limits;
  const isLimited = Math.min(maxTokens, maxCostUsd) < UNLIMITED;

  /** Tokens of an answer that this many USD pay for, beside the prompt. A model without a known price is only stopped after. */
  const affordable = async (usd: number, { model, prompt }: { model: string; prompt: number }) => {
    if (usd <= 0) return 0;
    const entry = await gateway.findModel(tenantId, model);
    if (entry === undefined || entry.outputCostPer1k === 0) return UNLIMITED;
    return ((usd - (prompt * entry.inputCostPer1k) / 1_000) / entry.outputCostPer1k) * 1_000;
  };
  return {
    total,
    /** Counts what an earlier worker recorded. */
    recall: add,
    /** Tracks the usage of one step, which counts to the run too. */
    ofStep: () => makeUsageTracker(add),
    /** Longest answer to these messages, in tokens; Infinity without a limit. @throws RunStopped: not even the prompt is left. */
    async tokensLeft(model: string, messages: readonly Message[]): Promise<number> {
      if (!isLimited) return UNLIMITED;
      const prompt = estimateMessageTokens(messages);
      const byTokens = maxTokens - total().tokens - prompt;
      if (byTokens < 1) throw new RunStopped("max_tokens");
      const byCost = await affordable(maxCostUsd - total().costUsd, { model, prompt });
      if (byCost < 1) throw new RunStopped("max_cost");
      return Math.floor(Math.min(byTokens, byCost));
    },
    /** What is left for an agent that is called as a tool. */
    left: (): Pick<RunLimits, "maxTokens" | "maxCostUsd"> => ({
      ...(limits.maxTokens === undefined ? {} : { maxTokens: Math.max(0, maxTokens - total().tokens) }),
      ...(limits.maxCostUsd === undefined ? {} : { maxCostUsd: Math.max(0, maxCostUsd - total().costUsd) }),
    }),
  };
}
