import { Rescheduled, Suspended } from "../jobs/reschedule.ts";
import { type AgentRunRecord, type AwaitedByRun, agentRunEnds, type StopReason } from "../store/agent-run-store.ts";
import type { CallOrigin } from "../store/completion-store.ts";

/**
 * A run is `completed` when its agent answered, `stopped` when a limit ended it before, with the best answer so far. Both
 * are results: their job is completed. The run's job says whether it is `queued`, `running`, or waits: for a decision, or for a
 * time or an event. The other states are on its record.
 */
export const runStates = ["queued", "running", "awaiting_approval", "waiting", ...agentRunEnds] as const;

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

/** Thrown inside a tool call that has to wait for what others bring about, and then by the run that made the call. */
export class CallSuspended extends Suspended {
  override name = "CallSuspended";
  readonly awaited: readonly AwaitedByRun[];
  /** The runs that it has suspended so far, the innermost first. */
  readonly runIds: readonly string[];

  constructor(awaited: readonly AwaitedByRun[], isOver: () => Promise<boolean>, runIds: readonly string[] = []) {
    super(isOver);
    this.awaited = awaited;
    this.runIds = runIds;
  }
}

/** What is thrown to take a run up again later, which is no failure of it. */
export type Pause = CallSuspended | Rescheduled;
export const isPause = (error: unknown): error is Pause =>
  error instanceof CallSuspended || error instanceof Rescheduled;

/** One pause for several calls of a run: for the first that ends. */
export function joinPauses(pauses: readonly Pause[]): Pause {
  const soonest = pauses.find((pause) => pause instanceof Rescheduled);
  if (soonest) return soonest;
  const suspended = pauses.filter((pause) => pause instanceof CallSuspended);
  const awaited = suspended.flatMap((pause) => pause.awaited);
  const isOver = async () => (await Promise.all(suspended.map((pause) => pause.isOver()))).includes(true);
  return new CallSuspended(
    awaited,
    isOver,
    suspended.flatMap((pause) => pause.runIds),
  );
}
