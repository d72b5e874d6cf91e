import { setTimeout as delay } from "node:timers/promises";
import { defined } from "../../lib/defined.ts";
import { AppError } from "../../lib/errors.ts";
import { jittered } from "../../lib/jitter.ts";
import type { CataloguedModel } from "../catalogue.ts";
import type { Plan } from "../chat/plan.ts";
import type { Routing, SkippedModel } from "../chat/route-model.ts";
import type { GatewayDeps } from "../deps.ts";
import { type Call, type GatewayCaller, openCall, type PricedCall } from "../money/account.ts";
import type { CallContext } from "../providers/provider.ts";
import { isBreakerOpen } from "./breaker.ts";
import type { AnswerFacts, AskedFacts } from "./call-attributes.ts";
import { type AttemptPermit, attemptTarget, type Target, toTarget } from "./target.ts";
import { fromAbort } from "./transport-errors.ts";

/** Attempts at one model; fewer at one that has a fallback, so that the caller does not wait long. */
const ATTEMPTS_AT_LAST = 3;
const ATTEMPTS_BEFORE_FALLBACK = 2;

/** What one model of a plan gets of a call; `onAttempt` is called before each request. */
export type ModelAttempt = { target: Target; routing: Routing; maxAttempts: number; onAttempt(): void };

/**
 * Calls the planned model, and when it fails in a way that another may not, or its breaker is open, its fallbacks in
 * order; `deps.maxAttempts` bounds the attempts in all. `call` settles its own record, so each model that was tried leaves one.
 * @throws the error of the last model that was called.
 */
export async function withFallbacks<T>(
  deps: GatewayDeps,
  plan: Plan,
  call: (modelAttempt: ModelAttempt) => Promise<T>,
): Promise<T> {
  const { routing } = plan;
  const { fallbacks } = routing;
  const skipped: SkippedModel[] = [];
  let attemptsLeft = deps.maxAttempts;
  let failure: unknown;
  for (let place = -1; place < fallbacks.length; place++) {
    const model = fallbacks[place] ?? routing.model;
    const isLast = place === fallbacks.length - 1;
    const target = toTarget(deps, plan, model);
    if (!isLast && target.breaker.isOpen()) {
      skipped.push(toSkipped(target, "it keeps failing and is not called for a moment"));
      continue;
    }
    const modelAttempt: ModelAttempt = {
      target,
      routing: skipped.length === 0 ? routing : toFallback(routing, model, skipped),
      maxAttempts: Math.min(attemptsLeft, isLast ? ATTEMPTS_AT_LAST : ATTEMPTS_BEFORE_FALLBACK),
      onAttempt: () => {
        attemptsLeft--;
      },
    };
    try {
      return await call(modelAttempt);
    } catch (error) {
      // If a fallback is only skipped by its breaker, keep the earlier model's error.
      const isRejection = error instanceof AppError && isBreakerOpen(error) && failure !== undefined;
      if (!isRejection) failure = error;
      if (isLast || attemptsLeft <= 0 || !mayAnotherModelDo(error)) throw failure;
      skipped.push(toSkipped(target, error instanceof AppError ? `${error.code}: ${error.message}` : "it failed"));
    }
  }
  throw failure;
}

/** Whether an error is the model's or its provider's, and not one of the request or of the caller. */
function mayAnotherModelDo(error: unknown): boolean {
  if (!(error instanceof AppError)) return false;
  if (error.code === "provider_rate_limited" || error.code === "provider_timeout") return true;
  if (error.code === "provider_key_refused") return true;
  return error.code === "provider_failed" && (error.retryable || error.reason === "access_refused");
}

function toFallback(routing: Routing, model: CataloguedModel, skipped: readonly SkippedModel[]): Routing {
  const reason = `${routing.reason}; a fallback for ${routing.model.id}`;
  return { ...routing, model, reason, skipped: [...skipped] };
}

function toSkipped({ model }: Target, reason: string): SkippedModel {
  return { model: model.id, provider: model.provider, reason };
}

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
  { target, routing, maxAttempts, onAttempt }: ModelAttempt,
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
