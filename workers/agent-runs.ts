import type { agentRunsQueue } from "../src/jobs/queues.ts";
import type { Handler } from "./run-job.ts";

/** Runs the agent of a job. */
export const runAgent: Handler<typeof agentRunsQueue> = (platform, context) => {
  const { payload, tenantId, isLastAttempt, signal, logger, step } = context;
  return platform.agents.execute({ tenantId, runId: payload.runId, isLastAttempt, signal, logger, step });
};
