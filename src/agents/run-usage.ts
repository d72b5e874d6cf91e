import { makeUsageTracker } from "../definitions/runs.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { Message } from "../gateway/messages.ts";
import { estimateMessageTokens } from "../gateway/tokens.ts";
import type { AgentRunRecord } from "../store/agent-run-store.ts";
import { RunStopped } from "./run-state.ts";

const UNLIMITED = Number.POSITIVE_INFINITY;

type UsageGateway = Pick<Gateway, "findModel"> & { runBudgets: Pick<Gateway["runBudgets"], "open" | "close"> };
type LimitedRun = Pick<AgentRunRecord, "_id" | "tenantId" | "limits" | "boundBy">;
export type RunUsage = ReturnType<typeof makeRunUsage>;

/** What a run has used, and what is left of its limits. Calls that failed or were cut count as far as their usage is known. */
export function makeRunUsage(run: LimitedRun, gateway: UsageGateway) {
  const { tenantId, limits, boundBy } = run;
  const { add, spent: total } = makeUsageTracker({});
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
    ofStep: () => makeUsageTracker(run, add),
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
    /**
     * The budgets that bound what the calls of one answer start, all together: those that bound this run, and what it had left when
     * the first of them started something. `turn`: the answer's place in the run.
     */
    async budgetsOf(turn: number): Promise<readonly string[] | undefined> {
      if (!isLimited) return boundBy;
      const { tokens, costUsd } = total();
      const id = `${run._id}:${turn}`;
      await gateway.runBudgets.open(tenantId, id, { tokens: maxTokens - tokens, usd: maxCostUsd - costUsd });
      return [...(boundBy ?? []), id];
    },
    /** Forgets what was left for such calls: the run has ended. */
    async closeBudgets(): Promise<void> {
      if (isLimited) await gateway.runBudgets.close(tenantId, run._id);
    },
  };
}
