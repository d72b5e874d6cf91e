import { AppError, type ErrorView, isCancel, toErrorView } from "../src/lib/errors.ts";
import { jittered } from "../src/lib/jitter.ts";
import { isStoreFailure } from "../src/store/store-errors.ts";

/** Why a try was stopped from outside. */
export type StopReason = "cancelled" | "fenced" | "shutdown" | "timeout";

/** What becomes of a job whose try has thrown. */
export type Verdict =
  | { outcome: "retry"; afterMs: number; error: ErrorView }
  | { outcome: "fail"; error: ErrorView }
  | { outcome: "cancel" }
  | { outcome: "release"; afterMs: number }
  | { outcome: "drop" };

/** Longest wait between two attempts, in ms. */
const MAX_BACKOFF_MS = 60_000;
/** How long after the store did not take what it was given a job is looked at again, in ms; up to half of it less, at random. */
export const STORE_RETRY_MS = 1_000;

export type Failure = {
  error: unknown;
  stopped: StopReason | undefined;
  /** Attempts that have failed, this one included. */
  failures: number;
  attempts: number;
  backoffMs: number;
  random: () => number;
};

/** Decides what becomes of a job after a try that threw. Pure; an error that is no AppError may be a passing one. */
export function judge(failure: Failure): Verdict {
  switch (failure.stopped) {
    case "cancelled":
      return { outcome: "cancel" };
    case "fenced":
      return { outcome: "drop" };
    case "shutdown":
      return { outcome: "release", afterMs: 0 };
    case "timeout":
      return retryOrFail(failure, new AppError("timeout", "The job ran longer than it may.", { retryable: true }));
    case undefined:
      if (isCancel(failure.error)) return { outcome: "cancel" };
      // The state of the store says nothing about the job: it counts as no failure, however long that takes.
      if (isStoreFailure(failure.error)) {
        return { outcome: "release", afterMs: jittered(STORE_RETRY_MS, { random: failure.random }) };
      }
      return retryOrFail(failure, failure.error);
    default:
      return failure.stopped satisfies never;
  }
}

function retryOrFail({ failures, attempts, backoffMs, random }: Failure, error: unknown): Verdict {
  const view = toErrorView(error);
  const isRetryable = error instanceof AppError ? error.retryable : true;
  if (!isRetryable || failures >= attempts) return { outcome: "fail", error: view };
  const asked = error instanceof AppError ? (error.retryAfterMs ?? 0) : 0;
  const backoff = Math.min(backoffMs * 2 ** (failures - 1), MAX_BACKOFF_MS);
  return { outcome: "retry", afterMs: Math.max(asked, jittered(backoff, { random })), error: view };
}
