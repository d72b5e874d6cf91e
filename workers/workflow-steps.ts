import type { workflowStepsQueue } from "../src/jobs/queues.ts";
import type { Handler } from "./run-job.ts";

/** Goes on with the run of a job. */
export const runWorkflow: Handler<typeof workflowStepsQueue> = (platform, context) => {
  const { payload, tenantId, isLastAttempt, signal, logger, step } = context;
  return platform.workflows.execute({ tenantId, runId: payload.runId, isLastAttempt, signal, logger, step });
};
