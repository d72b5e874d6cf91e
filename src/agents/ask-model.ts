import type { ChatOutcome } from "../gateway/chat/outcome.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { Message } from "../gateway/messages.ts";
import type { GatewayCaller } from "../gateway/money/account.ts";
import type { ToolDefinition } from "../gateway/providers/provider.ts";
import { defined } from "../lib/defined.ts";
import { isBudgetExhausted } from "../lib/errors.ts";
import type { AgentRunRecord } from "../store/agent-run-store.ts";
import type { GatewayAnswer } from "./gateway-model.ts";
import type { Turn } from "./iterations.ts";
import { toRecordedParts } from "./reasoning.ts";
import { originOf, RunStopped } from "./run-state.ts";
import type { RunUsage } from "./run-usage.ts";

/** Tool calls of one answer that are made; further ones are dropped from the conversation too. */
const MAX_CALLS = 16;
/** Longest text of an answer, and of a call's arguments, that is kept, in characters. */
const MAX_THOUGHT = 100_000;
const MAX_ARGUMENTS = 100_000;
/** Stands for arguments that did not come: no JSON, so that the call is not made. */
const CUT = "(cut)";

type AskDeps = {
  run: AgentRunRecord;
  gateway: Pick<Gateway, "complete">;
  usage: RunUsage;
  /** Aborts when the run has to end, for whatever reason. */
  signal: AbortSignal;
};

/** Calls the model of a run once. @throws RunStopped; AppError of the call; the signal's reason. */
export async function askModel(deps: AskDeps, messages: Message[], tools: ToolDefinition[]): Promise<GatewayAnswer> {
  const { run, usage, signal } = deps;
  const { definition, tenantId, caller, _id: runId } = run;
  const { model: name, temperature, maxTokens = Number.POSITIVE_INFINITY } = definition;
  const most = Math.min(await usage.tokensLeft(name, messages), maxTokens);
  const used = usage.ofStep();
  const gatewayCaller: GatewayCaller = {
    tenantId,
    keyId: caller.keyId,
    keyBudgetUsd: caller.keyBudgetUsd,
    surface: "agents",
    signal,
    limit: used.limit,
    origin: originOf(run),
    conversationId: run.sessionId,
  };
  const outcome = await complete(deps, gatewayCaller, {
    model: name,
    messages,
    ...defined({
      temperature,
      maxTokens: Number.isFinite(most) ? most : undefined,
      tools: tools.length === 0 ? undefined : tools,
    }),
    promptCacheKey: runId,
    // A response from the cache is one that the run's audit log would not explain.
    options: { cache: false },
  });
  return { outcome, spent: used.spent() };
}

async function complete(
  { gateway, signal }: AskDeps,
  caller: GatewayCaller,
  request: Parameters<Gateway["complete"]>[1],
): Promise<ChatOutcome> {
  try {
    return await gateway.complete(caller, request);
  } catch (error) {
    signal.throwIfAborted();
    // What is left of the tenant's month is a limit of the run too.
    if (isBudgetExhausted(error)) throw new RunStopped("budget_exhausted");
    throw error;
  }
}

/** An answer in the form in which it is recorded. `index`: its place in the run, from 1. */
export function toTurn(
  { outcome, spent }: GatewayAnswer,
  { runId, index, isKnown }: { runId: string; index: number; isKnown(callId: string): boolean },
): Turn {
  const thought = (outcome.text || (outcome.reasoning ?? "")).slice(0, MAX_THOUGHT).toWellFormed();
  const { model, logId, finishReason } = outcome;
  const isCut = finishReason === "length" || finishReason === "content_filter";
  const common = { thought, model, logId, spent };
  if (outcome.toolCalls.length === 0) return { kind: "answer", ...common, ...(isCut ? { cut: finishReason } : {}) };
  const { areIdsKept, ...reasoned } = toRecordedParts(outcome, { isKnown, most: MAX_CALLS });
  return {
    kind: "intention",
    ...common,
    calls: outcome.toolCalls.slice(0, MAX_CALLS).map((call, place) => ({
      // Ids of our own, where they may be: providers have been seen to give one twice in a conversation.
      id: areIdsKept ? call.id : `call_${index}_${place + 1}`,
      name: call.name.slice(0, 100).toWellFormed(),
      // No arguments of a call that was cut are not the same as none.
      arguments: isCut && call.arguments === "" ? CUT : call.arguments.slice(0, MAX_ARGUMENTS).toWellFormed(),
      idempotencyKey: `${runId}-${index}-${place + 1}`,
    })),
    ...reasoned,
  };
}
