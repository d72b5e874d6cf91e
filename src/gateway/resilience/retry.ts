import { setTimeout as delay } from "node:timers/promises";
import { AppError } from "../../errors.ts";
import { jittered } from "../../jitter.ts";
import { isBreakerOpen } from "./breaker.ts";
import { fromAbort } from "./transport-errors.ts";

/** The wait before the second try, in ms; it doubles. Half of it is random, so that callers do not come back together. */
const BASE_DELAY_MS = 200;
/** A provider that asks for a longer wait than this is not waited for: its `Retry-After` goes to the caller instead. */
const MAX_RETRY_AFTER_MS = 5_000;

/** Whether the same call is worth another try here and now. Silence is not: it has cost the whole time limit already. */
export function isWorthRetry(error: unknown): error is AppError {
  if (!(error instanceof AppError) || !error.retryable || isBreakerOpen(error)) return false;
  if (error.retryAfterMs !== undefined && error.retryAfterMs > MAX_RETRY_AFTER_MS) return false;
  return error.reason !== "silent";
}

/** The wait before the try after `tries`, in ms. */
export function retryDelayMs(error: AppError, tries: number, random: () => number = Math.random): number {
  const backoff = BASE_DELAY_MS * 2 ** (tries - 1);
  return Math.max(error.retryAfterMs ?? 0, jittered(backoff, { random }));
}

/**
 * Runs `attempt` until it succeeds, at most `maxAttempts` times, with jitter between tries and heeding `Retry-After`.
 * Throws the last error, or the signal's when the caller went away.
 */
export async function withRetries<T>(
  attempt: () => Promise<T>,
  options: { signal: AbortSignal; maxAttempts: number },
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (tries >= options.maxAttempts || !isWorthRetry(error)) throw error;
      await delay(retryDelayMs(error, tries), undefined, { signal: options.signal }).catch(() => {
        throw fromAbort(options.signal);
      });
    }
  }
}
