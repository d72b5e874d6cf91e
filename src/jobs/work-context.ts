import type { Logger } from "../logger.ts";

/** What the worker's shell gives to what goes on with a run that is recorded. */
export type WorkContext = {
  tenantId: string;
  runId: string;
  /** Whether a failure of this try is the run's. */
  isLastAttempt: boolean;
  signal: AbortSignal;
  logger: Logger;
  /** Tells followers of the job what happened. Throws the signal's reason when the job is not ours to run any more. */
  step(data: Record<string, unknown>): Promise<void>;
};
