import { z } from "zod";
import { idSchema } from "../ids.ts";
import { defineQueue } from "./define-queue.ts";

const retention = {
  keepCompleted: { age: 3_600, count: 1_000 },
  keepFailed: { age: 86_400, count: 1_000 },
};

/** What every payload has. */
const ids = { v: z.literal(1), jobId: idSchema("job"), tenantId: idSchema("tenant") };

/** Fetch, parse, split, embed and index one document. */
export const ingestionQueue = defineQueue({
  name: "ingestion",
  kind: "ingestion",
  payload: z.strictObject({ ...ids, documentId: idSchema("document") }),
  concurrency: 4,
  isComputing: true,
  attempts: 3,
  backoffMs: 1_000,
  timeoutMs: 15 * 60_000,
  ...retention,
});

/** Run one agent. */
export const agentRunsQueue = defineQueue({
  name: "agent-runs",
  kind: "agent",
  payload: z.strictObject({ ...ids, runId: idSchema("run") }),
  concurrency: 16,
  attempts: 3,
  backoffMs: 1_000,
  timeoutMs: 15 * 60_000, // more than a run's own limit, which ends it with an answer
  ...retention,
});

/** Continue one run of a workflow, from its first step without a result. */
export const workflowStepsQueue = defineQueue({
  name: "workflow-steps",
  kind: "workflow",
  payload: z.strictObject({ ...ids, runId: idSchema("workflowRun") }),
  concurrency: 16,
  attempts: 5, // of what is no step's own failure: those have tries of their own
  backoffMs: 1_000,
  timeoutMs: 15 * 60_000,
  ...retention,
});

/** Run one composite pattern. */
export const compositeQueue = defineQueue({
  name: "composite-runs",
  kind: "composite",
  payload: z.strictObject({ ...ids, executionId: idSchema("execution") }),
  concurrency: 16,
  attempts: 2,
  backoffMs: 1_000,
  timeoutMs: 15 * 60_000,
  ...retention,
});

/** Submit one batch of chats to a provider, follow it, and give each chat its answer. */
export const batchQueue = defineQueue({
  name: "batch-completions",
  kind: "completion",
  payload: z.strictObject({
    ...ids,
    /** One or the other: a provider's batch, or a file of requests that a client submitted. */
    batchId: idSchema("batch").optional(),
    fileBatchId: idSchema("fileBatch").optional(),
  }),
  concurrency: 8,
  attempts: 5,
  backoffMs: 2_000,
  timeoutMs: 30 * 60_000,
  ...retention,
});

/** Every queue of the product. Some work (src/jobs/work.ts) must run the jobs of each. */
export const queues = {
  ingestion: ingestionQueue,
  agentRuns: agentRunsQueue,
  workflowSteps: workflowStepsQueue,
  compositeRuns: compositeQueue,
  batchCompletions: batchQueue,
} as const;
