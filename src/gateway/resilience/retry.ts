import { setTimeout as delay } from "node:timers/promises";
import { defined } from "../../defined.ts";
import { AppError } from "../../errors.ts";
import { jittered } from "../../jitter.ts";
import type { GatewayDeps } from "../deps.ts";
import { type Call, type GatewayCaller, openCall, type PricedCall } from "../money/account.ts";
import type { CallContext } from "../providers/provider.ts";
import { isBreakerOpen } from "./breaker.ts";
import type { AnswerFacts, AskedFacts } from "./call-attributes.ts";
import type { Share } from "./fallback.ts";
import { type AttemptPermit, attemptTarget } from "./target.ts";
import { fromAbort } from "./transport-errors.ts";

/** The wait before the second attempt, in ms; it doubles. Half of it is random, so that callers do not come back together. */
const BASE_DELAY_MS = 200;
/** A longer `Retry-After` of a provider is not waited for: it goes to the caller instead. */
const MAX_RETRY_AFTER_MS = 5_000;

/** Whether the same call is worth another attempt here and now. Silence is not: it has cost the whole time limit already. */
export function isWorthRetry(error: unknown): error is AppError {
  if (!(error instanceof AppError) || !error.retryable || isBreakerOpen(error)) return false;
  if (error.retryAfterMs !== undefined && error.retryAfterMs > MAX_RETRY_AFTER_MS) return false;
  return error.reason !== "silent";
}

/** The wait after this many attempts, in ms. */
export function retryDelayMs(error: AppError, attempts: number, random: () => number = Math.random): number {
  const backoff = BASE_DELAY_MS * 2 ** (attempts - 1);
  return Math.max(error.retryAfterMs ?? 0, jittered(backoff, { random }));
}

/** Tries at most `maxAttempts` times, after `Retry-After` and with jitter. @throws the last error, or the signal's. */
export async function withRetries<T>(
  attempt: () => Promise<T>,
  options: { signal: AbortSignal; maxAttempts: number },
): Promise<T> {
  for (let attempts = 1; ; attempts++) {
    try {
      return await attempt();
    } catch (error) {
      if (attempts >= options.maxAttempts || !isWorthRetry(error)) throw error;
      await delay(retryDelayMs(error, attempts), undefined, { signal: options.signal }).catch(() => {
        throw fromAbort(options.signal);
      });
    }
  }
}

type Asked<T> = Omit<PricedCall, "routing"> & {
  caller: GatewayCaller;
  /** For the span of the call. */
  facts?: AskedFacts;
  describe?: (result: T) => AnswerFacts;
  /** Ends the call; the caller's own, unless the call may end before it. */
  signal?: AbortSignal;
};

/** Opens a call's record and asks one model, with retries. A failure is settled here. `begin` runs before each attempt. */
export async function askModel<T>(
  deps: GatewayDeps,
  { target, routing, maxAttempts, onAttempt }: Share,
  { caller, signal = caller.signal, facts, describe, ...about }: Asked<T>,
  begin: (call: Call) => (context: CallContext, permit: AttemptPermit) => Promise<T>,
): Promise<{ call: Call; result: T }> {
  const call = await openCall(deps, caller, { ...about, routing });
  const attempted = {
    signal,
    about: defined({ ...facts, isStream: about.isStreamed, conversationId: caller.conversationId }),
    describe,
    onCharged: call.onCharged,
    onAttempt: () => {
      onAttempt();
      call.onAttempt();
    },
  };
  try {
    const attempt = () => attemptTarget(target, attempted, begin(call));
    return { call, result: await withRetries(attempt, { signal, maxAttempts }) };
  } catch (error) {
    call.settle({ error });
    throw error;
  }
}
