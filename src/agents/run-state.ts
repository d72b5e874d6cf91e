import { type AgentRunRecord, agentRunEnds, type StopReason } from "../store/agent-run-store.ts";
import type { CallOrigin } from "../store/completion-store.ts";

/**
 * A run is `completed` when its agent answered, `stopped` when a limit ended it before, with the best answer so far. Both
 * are results: their job is completed. The run's job says whether it is `queued` or `running`; the other states are on its record.
 */
export const runStates = ["queued", "running", ...agentRunEnds] as const;

/** What the model calls of a run are made for. */
export const originOf = ({ jobId, agentId, _id: runId }: AgentRunRecord): CallOrigin => ({ jobId, runId, agentId });

/** Thrown inside a run to end it with the best answer so far. */
export class RunStopped extends Error {
  override name = "RunStopped";
  readonly reason: StopReason;

  constructor(reason: StopReason) {
    super(`the run was stopped: ${reason}`);
    this.reason = reason;
  }
}
