import { AppError, type ErrorView, toErrorView } from "../errors.ts";
import { jittered } from "../jitter.ts";
import type { Step } from "./step-schemas.ts";

/** Tries of a step that names no number, the first one included; receivers of webhooks are away more often than models. */
const DEFAULT_ATTEMPTS = 3;
const WEBHOOK_ATTEMPTS = 5;
const DEFAULT_BACKOFF_MS = 1_000;
const MAX_WAIT_MS = 600_000;

/**
 * What becomes of a step that has failed: another try in `afterMs` (doubling with each, or what was asked for, if that is longer),
 * or its error for good. What is no error of ours may be a passing one.
 */
export function judgeStep(failure: {
  error: unknown;
  step: Pick<Step, "type" | "retry">;
  attempts: number;
  random: () => number;
}): { afterMs: number } | { error: ErrorView } {
  const { error, step, attempts, random } = failure;
  const most = step.retry?.attempts ?? (step.type === "webhook" ? WEBHOOK_ATTEMPTS : DEFAULT_ATTEMPTS);
  const canHelp = !(error instanceof AppError) || error.retryable;
  if (!canHelp || attempts >= most) return { error: toErrorView(error) };
  const backoffMs = Math.min((step.retry?.backoffMs ?? DEFAULT_BACKOFF_MS) * 2 ** (attempts - 1), MAX_WAIT_MS);
  const askedMs = error instanceof AppError ? (error.retryAfterMs ?? 0) : 0;
  return { afterMs: Math.max(jittered(backoffMs, { random }), Math.min(askedMs, MAX_WAIT_MS)) };
}
