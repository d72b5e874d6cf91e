import { spentOf } from "../definitions/runs.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { GatewayCaller } from "../gateway/money/account.ts";
import type { FinishReason } from "../gateway/providers/provider.ts";
import { AppError, toErrorView, withoutText } from "../lib/errors.ts";
import type { ExecutionStep } from "../store/execution-store.ts";
import type { Ask, Complete } from "./patterns/pattern.ts";

/** Longest answer that is recorded and passed on, in characters. */
const MAX_OUTPUT = 60_000;

type CallsDeps = {
  gateway: Pick<Gateway, "complete">;
  caller: GatewayCaller;
  /** Calls that an earlier attempt at the run recorded. */
  recorded: readonly ExecutionStep[];
  /** Called before each call, with the number of calls that have ended. */
  onStart(ask: Ask, ended: number): Promise<void>;
  /** Records a call that has ended. Resolves with what is recorded: another worker may have had an answer first. */
  onEnd(step: ExecutionStep): Promise<ExecutionStep>;
};

/**
 * The model calls of one run: how patterns make them, and those that have `ended`, earlier attempts and failures included. A
 * call that an earlier attempt recorded as answered is not made again; one that failed then is. Safe for calls in parallel.
 */
export function makeRunCalls({ gateway, caller, recorded, onStart, onEnd }: CallsDeps) {
  const ended = [...recorded];
  const end = async (step: ExecutionStep) => {
    const kept = await onEnd(step);
    ended.push(kept);
    return kept.output;
  };

  const complete: Complete = async (ask) => {
    const known = recorded.find(({ step, status }) => step === ask.step && status === "completed");
    if (known) return known.output;
    caller.signal.throwIfAborted();
    await onStart(ask, ended.length);
    const startedAt = new Date();
    const about = { step: ask.step, role: ask.role, model: ask.model, startedAt };
    try {
      const outcome = await gateway.complete(caller, {
        model: ask.model,
        systemPrompt: ask.system,
        messages: [{ role: "user", content: ask.user }],
        preferredTemperature: ask.temperature,
        maxTokens: ask.maxTokens,
        // Each member answers independently, and nothing of a regulated run is kept elsewhere.
        options: { cache: false },
      });
      const output = outcome.text.trim().slice(0, MAX_OUTPUT).toWellFormed();
      const spent = { ...spentOf(outcome), logId: outcome.logId, finishedAt: new Date() };
      const { model, finishReason } = outcome;
      const ended = { ...about, ...spent, model, ...(isWhole(finishReason) ? {} : { finishReason }) };
      if (output !== "") return await end({ ...ended, status: "completed", output });
      const error = new AppError("provider_failed", "The model answered nothing.", { retryable: true });
      return await end({ ...about, ...spent, status: "failed", error: toErrorView(error) });
    } catch (error) {
      if (caller.signal.aborted || !isMembersOwn(error)) throw error;
      const failed = { status: "failed", error: withoutText(toErrorView(error)), tokens: 0, costUsd: 0 } as const;
      return await end({ ...about, ...failed, finishedAt: new Date() });
    }
  };
  return { complete, ended: ended as readonly ExecutionStep[] };
}

const isWhole = (reason: FinishReason): reason is Exclude<FinishReason, NonNullable<ExecutionStep["finishReason"]>> =>
  reason !== "length" && reason !== "content_filter";

/** Failures of one model, which the others can compensate. All else, a spent budget or a lost store, stops the run. */
function isMembersOwn(error: unknown): boolean {
  const codes: readonly string[] = [
    "provider_rejected",
    "provider_failed",
    "provider_timeout",
    "provider_rate_limited",
    "provider_not_configured",
    "provider_key_refused",
    "provider_key_unreadable",
    "unknown_model",
    "invalid_request",
    "rate_limited",
  ];
  return error instanceof AppError && codes.includes(error.code);
}
