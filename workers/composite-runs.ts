import type { compositeQueue } from "../src/jobs/queues.ts";
import type { Handler } from "./run-job.ts";

/** Runs the composite pattern of a job. */
export const runComposite: Handler<typeof compositeQueue> = (platform, context) => {
  const { payload, tenantId, isLastAttempt, signal, progress, step } = context;
  const { executionId } = payload;
  return platform.composite.execute({ tenantId, executionId, isLastAttempt, signal, progress, step });
};
