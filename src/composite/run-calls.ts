import { AppError, type ErrorView, toErrorView } from "../errors.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { GatewayCaller } from "../gateway/money/account.ts";
import type { ExecutionStep } from "../store/execution-store.ts";
import type { Ask, Complete } from "./patterns/pattern.ts";

/** Longest answer that is recorded and passed on, in characters. */
const MAX_OUTPUT = 60_000;

export type CallsDeps = {
  gateway: Pick<Gateway, "complete">;
  caller: GatewayCaller;
  /** Calls that an earlier try of the run recorded. */
  recorded: readonly ExecutionStep[];
  /** Tells that a call begins. */
  onStart(ask: Ask): Promise<void>;
  /** Records a call that has ended. */
  onEnd(step: ExecutionStep): Promise<void>;
};

/** The model calls of one run, and what they came to. */
export type RunCalls = {
  complete: Complete;
  /** Model calls that were made by now, those of earlier tries and those that failed included. */
  count(): number;
  tokens(): number;
  costUsd(): number;
  /** The models that answered. */
  models(): string[];
  /** Why the last call that failed did. */
  lastFailure(): ErrorView | undefined;
};

/**
 * Makes the `complete` function of a run. A call that an earlier try recorded as answered is not made again; one that failed
 * then is. Safe for calls in parallel.
 */
export function makeRunCalls({ gateway, caller, recorded, onStart, onEnd }: CallsDeps): RunCalls {
  const answers = new Map(
    recorded.flatMap((step) => (step.status === "completed" ? [[step.step, step] as const] : [])),
  );
  const ended = [...recorded];
  let lastFailure: ErrorView | undefined;
  const end = async (step: ExecutionStep) => {
    ended.push(step);
    await onEnd(step);
  };

  const complete: Complete = async (ask) => {
    const known = answers.get(ask.step);
    if (known) return known.output;
    caller.signal.throwIfAborted();
    await onStart(ask);
    const startedAt = new Date();
    const about = { step: ask.step, role: ask.role, model: ask.model, startedAt };
    try {
      const outcome = await gateway.complete(caller, {
        model: ask.model,
        systemPrompt: ask.system,
        messages: [{ role: "user", content: ask.user }],
        preferredTemperature: ask.temperature,
        maxTokens: ask.maxTokens,
        // Members answer each on its own, and nothing of a regulated run is kept elsewhere.
        options: { cache: false },
      });
      const output = outcome.text.trim().slice(0, MAX_OUTPUT).toWellFormed();
      const spent = {
        tokens: outcome.usage.inputTokens + outcome.usage.outputTokens,
        costUsd: outcome.costUsd,
        logId: outcome.logId,
        finishedAt: new Date(),
      };
      if (output !== "") {
        await end({ ...about, ...spent, model: outcome.model, status: "completed", output });
        return output;
      }
      const error = new AppError("provider_failed", "The model answered nothing.", { retryable: true });
      lastFailure = toErrorView(error);
      await end({ ...about, ...spent, status: "failed", error: lastFailure });
      return undefined;
    } catch (error) {
      if (caller.signal.aborted || !isMembersOwn(error)) throw error;
      lastFailure = toErrorView(error);
      await end({ ...about, status: "failed", error: lastFailure, tokens: 0, costUsd: 0, finishedAt: new Date() });
      return undefined;
    }
  };
  return {
    complete,
    count: () => ended.length,
    tokens: () => ended.reduce((sum, { tokens }) => sum + tokens, 0),
    costUsd: () => ended.reduce((sum, { costUsd }) => sum + costUsd, 0),
    models: () => [...new Set(ended.filter(({ status }) => status === "completed").map(({ model }) => model))],
    lastFailure: () => lastFailure,
  };
}

/** Failures of one model, which the others can make good. All else, a spent budget or a lost store, stops the run. */
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
