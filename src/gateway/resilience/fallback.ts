import { AppError } from "../../errors.ts";
import type { CataloguedModel } from "../catalogue.ts";
import type { Plan } from "../chat/plan.ts";
import type { Routing, SkippedModel } from "../chat/route-model.ts";
import type { GatewayDeps } from "../deps.ts";
import { isBreakerOpen } from "./breaker.ts";
import { type Target, toTarget } from "./target.ts";

/** Tries at one model; fewer at one that has a substitute, so that its caller is not kept waiting. */
const TRIES_AT_LAST = 3;
const TRIES_BEFORE_SUBSTITUTE = 2;

/** One model's share of a call: `onTry` is to be told of each try before it begins. */
export type Share = { target: Target; routing: Routing; maxTries: number; onTry(): void };

/**
 * Calls the planned model, and when it fails in a way that another may not, or its breaker is open, its substitutes in
 * order; `deps.maxTries` bounds the tries in all. `call` settles its own record, so each model that was tried leaves one.
 * @throws the error of the last model that was called.
 */
export async function withSubstitutes<T>(
  deps: GatewayDeps,
  plan: Plan,
  call: (share: Share) => Promise<T>,
): Promise<T> {
  const { routing } = plan;
  const { substitutes } = routing;
  const skipped: SkippedModel[] = [];
  let triesLeft = deps.maxTries;
  let failure: unknown;
  for (let place = -1; place < substitutes.length; place++) {
    const model = substitutes[place] ?? routing.model;
    const isLast = place === substitutes.length - 1;
    const target = toTarget(deps, plan, model);
    if (!isLast && target.breaker.isOpen()) {
      skipped.push(toSkipped(target, "it keeps failing and is not called for a moment"));
      continue;
    }
    const share: Share = {
      target,
      routing: skipped.length === 0 ? routing : toSubstituted(routing, model, skipped),
      maxTries: Math.min(triesLeft, isLast ? TRIES_AT_LAST : TRIES_BEFORE_SUBSTITUTE),
      onTry: () => {
        triesLeft--;
      },
    };
    try {
      return await call(share);
    } catch (error) {
      // That a substitute is not called either says less than why the model before it failed.
      const isRefusal = error instanceof AppError && isBreakerOpen(error) && failure !== undefined;
      if (!isRefusal) failure = error;
      if (isLast || triesLeft <= 0 || !mayAnotherModelDo(error)) throw failure;
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

function toSubstituted(routing: Routing, model: CataloguedModel, skipped: readonly SkippedModel[]): Routing {
  const reason = `${routing.reason}; a substitute for ${routing.model.id}`;
  return { ...routing, model, reason, skipped: [...skipped] };
}

function toSkipped({ model }: Target, reason: string): SkippedModel {
  return { model: model.id, provider: model.provider, reason };
}
