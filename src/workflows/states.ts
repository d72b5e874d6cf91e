import type { JobState } from "../jobs/job-state.ts";

/** What a run can be. All but the first three are ends; `queued` and `running` are told by its job. */
export const runStates = [
  "queued",
  "running",
  "awaiting_approval",
  "completed",
  "failed",
  "rejected",
  "expired",
  "cancelled",
] as const;
export type RunState = (typeof runStates)[number];
export type EndState = Exclude<RunState, "queued" | "running" | "awaiting_approval">;

/** `cancelled`: its run ended without it. */
export const approvalStates = ["pending", "approved", "rejected", "expired", "cancelled"] as const;
export type ApprovalState = (typeof approvalStates)[number];

/** The state of a run without an end: that of its job, as long as that is no end either. */
export function openRunState(job: JobState | undefined, hasStarted: boolean): RunState {
  switch (job) {
    case "queued":
      return hasStarted ? "running" : "queued"; // it has its next turn soon
    case "running":
    case "awaiting": // between two steps, or for a retry
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
