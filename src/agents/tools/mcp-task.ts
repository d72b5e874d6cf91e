import { setTimeout as delay } from "node:timers/promises";
import { jittered } from "../../jitter.ts";

/** A task at an MCP server, of either era: its server does the work, and is asked for the state until that has ended. */

export const taskStates = ["working", "input_required", "completed", "failed", "cancelled"] as const;

/** Longest time of a call at a server that makes a task of it, in ms. */
export const TASK_TIMEOUT_MS = 300_000;

/** Bounds on how often a task is asked for, whatever its server says, in ms. */
const LEAST_POLL_MS = 100;
const MOST_POLL_MS = 10_000;
const DEFAULT_POLL_MS = 1_000;
/** Polls in a row that may fail because the server cannot be reached: the task outlives that. */
const MAX_FAILED_POLLS = 3;
const CANCEL_TIMEOUT_MS = 2_000;

export type TaskState = { status: (typeof taskStates)[number]; pollMs?: number | undefined };

/** What a server returned as an error, which another try would not change. */
export class RefusedByServer extends Error {}

type Task<S> = {
  created: S;
  /** @throws RefusedByServer when the server no longer has the task. */
  read(signal: AbortSignal): Promise<S>;
  cancel(signal: AbortSignal): Promise<unknown>;
};

/**
 * The state in which a task ended. One that is not waited for any more is cancelled: when the signal aborts, when the task asks
 * for input, and when its server stays unavailable.
 * @throws the signal's reason; an error for a task that asks for input; the last error of the server.
 */
export async function followTask<S extends TaskState>(task: Task<S>, signal: AbortSignal): Promise<S> {
  let state = task.created;
  let failed = 0;
  try {
    while (state.status === "working") {
      const pollMs = Math.min(Math.max(state.pollMs ?? DEFAULT_POLL_MS, LEAST_POLL_MS), MOST_POLL_MS);
      await delay(failed === 0 ? pollMs : jittered(2 * pollMs), undefined, { signal });
      try {
        state = await task.read(signal);
        failed = 0;
      } catch (error) {
        failed += 1;
        if (signal.aborted || error instanceof RefusedByServer || failed > MAX_FAILED_POLLS) throw error;
      }
    }
    if (state.status !== "input_required") return state;
    throw new Error("The task asks for a person's input, which an agent cannot give. It was cancelled.");
  } catch (error) {
    await task.cancel(AbortSignal.timeout(CANCEL_TIMEOUT_MS)).catch(() => undefined); // it may have ended
    throw error;
  }
}
