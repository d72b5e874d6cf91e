import type { ErrorView } from "../errors.ts";
import type { JobState } from "../jobs/job-state.ts";

/**
 * A run is `completed` when its agent answered, `stopped` when a limit ended it before, with the best answer so far. Both
 * are answers: their job is completed. `queued` and `running` are told by the run's job; the others are on its record.
 */
export const runStates = ["queued", "running", "completed", "stopped", "failed", "cancelled"] as const;
export type RunState = (typeof runStates)[number];
export type EndState = Exclude<RunState, "queued" | "running">;

/** Why a run was stopped. */
export const stopReasons = [
  "max_iterations",
  "timeout",
  "max_tokens",
  "max_cost",
  "max_depth",
  "budget_exhausted",
  "parent_stopped",
] as const;
export type StopReason = (typeof stopReasons)[number];

/** What a run may use. Times in ms. */
export type RunLimits = { timeoutMs: number; maxTokens?: number; maxCostUsd?: number };

/** How a run ended. */
export type RunEnd = {
  status: EndState;
  output: string;
  reason?: StopReason;
  error?: ErrorView;
  /** Iterations: answers of the model. */
  steps: number;
  tokensUsed: number;
  costUsd: number;
  /** Number of its audit entries, and the hash of the last one: what the chain must lead to. */
  entries: number;
  head: string;
  finishedAt: Date;
};

/** The state of a run without an end: that of its job, as long as that is no end either. */
export function openRunState(job: JobState | undefined): RunState {
  switch (job) {
    case "queued":
      return "queued";
    case "running":
    case "awaiting":
    case "completed": // the run's own end is about to be written
      return "running";
    case "cancelled":
      return "cancelled";
    case "failed":
    case undefined:
      return "failed";
    default:
      return job satisfies never;
  }
}

/** Thrown inside a run to end it with the best answer so far. */
export class RunStopped extends Error {
  override name = "RunStopped";
  readonly reason: StopReason;

  constructor(reason: StopReason) {
    super(`the run was stopped: ${reason}`);
    this.reason = reason;
  }
}
