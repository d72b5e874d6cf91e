import type { Logger } from "../logger.ts";
import type { RunResult } from "./schemas.ts";

/** What the worker's shell gives a run, and an agent's run the one that it makes for a tool call. */
export type RunContext = {
  tenantId: string;
  runId: string;
  /** Whether a failure of this try is the run's. */
  isLastAttempt: boolean;
  signal: AbortSignal;
  logger: Logger;
  /** Tells followers of the job what happened. Throws the signal's reason when the job is not ours to run any more. */
  step(data: Record<string, unknown>): Promise<void>;
};

/** The same for what runs it; `execute` runs an agent that is called as a tool. */
export type InnerRunContext = RunContext & { execute(context: RunContext): Promise<RunResult> };
