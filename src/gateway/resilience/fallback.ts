import { AppError } from "../../errors.ts";
import type { CataloguedModel } from "../catalogue.ts";
import type { Plan } from "../chat/plan.ts";
import type { Routing, SkippedModel } from "../chat/route-model.ts";
import type { GatewayDeps } from "../deps.ts";
import { isBreakerOpen } from "./breaker.ts";
import { type Target, toTarget } from "./target.ts";

/** Attempts at one model; fewer at one that has a fallback, so that the caller does not wait long. */
const ATTEMPTS_AT_LAST = 3;
const ATTEMPTS_BEFORE_FALLBACK = 2;

/** One model's share of a call: `onAttempt` is called before each attempt begins. */
export type Share = { target: Target; routing: Routing; maxAttempts: number; onAttempt(): void };

/**
 * Calls the planned model, and when it fails in a way that another may not, or its breaker is open, its fallbacks in
 * order; `deps.maxAttempts` bounds the attempts in all. `call` settles its own record, so each model that was tried leaves one.
 * @throws the error of the last model that was called.
 */
export async function withFallbacks<T>(deps: GatewayDeps, plan: Plan, call: (share: Share) => Promise<T>): Promise<T> {
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
    const share: Share = {
      target,
      routing: skipped.length === 0 ? routing : toFallback(routing, model, skipped),
      maxAttempts: Math.min(attemptsLeft, isLast ? ATTEMPTS_AT_LAST : ATTEMPTS_BEFORE_FALLBACK),
      onAttempt: () => {
        attemptsLeft--;
      },
    };
    try {
      return await call(share);
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
