import { z } from "zod";
import { idSchema } from "../lib/ids.ts";
import type { JobKind } from "../store/job-record.ts";

/**
 * The contract between both sides of a queue. A payload has only ids (and `v`) and is below 1 KiB; contents stay in the store.
 */
export type QueueDefinition = {
  name: string;
  kind: JobKind;
  payload: z.ZodType;
  /** Jobs that one worker process runs at once, before `WORKER_CONCURRENCY`. */
  concurrency: number;
  /** Attempts that may fail, the first included; only retryable errors are attempted again. */
  attempts: number;
  /** Wait before the second attempt, in ms; doubles at each further one, with jitter. */
  backoffMs: number;
  /** Longest run of one attempt, in ms; then its signal aborts and the attempt counts as failed. */
  timeoutMs: number;
};

/** What every payload has. */
const ids = { v: z.literal(1), jobId: idSchema("job"), tenantId: idSchema("tenant") };

/** Fetch, parse, split, embed and index one document. */
export const ingestionQueue: QueueDefinition = {
  name: "ingestion",
  kind: "ingestion",
  payload: z.strictObject({ ...ids, documentId: idSchema("document") }),
  concurrency: 4,
  attempts: 3,
  backoffMs: 1_000,
  timeoutMs: 15 * 60_000,
};

/** Move the documents of one tenant to another embedding model. */
export const reindexQueue: QueueDefinition = {
  name: "reindexing",
  kind: "reindex",
  payload: z.strictObject({ ...ids, reindexId: idSchema("reindex") }),
  concurrency: 2,
  attempts: 5,
  backoffMs: 2_000,
  timeoutMs: 30 * 60_000, // longer than one turn, after which another run continues it
};

/** Run one agent. */
export const agentRunsQueue: QueueDefinition = {
  name: "agent-runs",
  kind: "agent",
  payload: z.strictObject({ ...ids, runId: idSchema("run") }),
  concurrency: 16,
  attempts: 3,
  backoffMs: 1_000,
  timeoutMs: 15 * 60_000, // longer than the run's own limit, which ends it with an answer
};

/** Continue one run of a workflow, from its first step without a result. */
export const workflowStepsQueue: QueueDefinition = {
  name: "workflow-steps",
  kind: "workflow",
  payload: z.strictObject({ ...ids, runId: idSchema("workflowRun") }),
  concurrency: 16,
  attempts: 5, // for failures outside of steps; a step has attempts of its own
  backoffMs: 1_000,
  timeoutMs: 15 * 60_000,
};

/** Run one composite pattern. */
export const compositeQueue: QueueDefinition = {
  name: "composite-runs",
  kind: "composite",
  payload: z.strictObject({ ...ids, executionId: idSchema("execution") }),
  concurrency: 16,
  attempts: 2,
  backoffMs: 1_000,
  timeoutMs: 15 * 60_000,
};

/** Make one response in the background. */
export const responsesQueue: QueueDefinition = {
  name: "background-responses",
  kind: "response",
  payload: z.strictObject({ ...ids, responseId: idSchema("response") }),
  concurrency: 16,
  attempts: 3,
  backoffMs: 1_000,
  timeoutMs: 30 * 60_000,
};

/** Submit one batch of chats to a provider, follow it, and give each chat its answer. */
export const batchQueue: QueueDefinition = {
  name: "batch-completions",
  kind: "completion",
  payload: z.strictObject({
    ...ids,
    /** One or the other: a provider's batch, or a file of requests that a client submitted. */
    batchId: idSchema("batch").optional(),
    fileBatchId: idSchema("fileBatch", "messageBatch").optional(),
  }),
  concurrency: 8,
  attempts: 5,
  backoffMs: 2_000,
  timeoutMs: 30 * 60_000,
};

/** Hand one event to what waits for it, and start what it triggers. */
export const eventsQueue: QueueDefinition = {
  name: "event-deliveries",
  kind: "event",
  payload: z.strictObject({ ...ids, eventId: idSchema("event") }),
  concurrency: 16,
  attempts: 5,
  backoffMs: 1_000,
  timeoutMs: 15 * 60_000,
};

/** Every queue of the product. Some work (src/jobs/work.ts) must run the jobs of each. */
export const queues = {
  ingestion: ingestionQueue,
  reindexing: reindexQueue,
  agentRuns: agentRunsQueue,
  workflowSteps: workflowStepsQueue,
  compositeRuns: compositeQueue,
  responses: responsesQueue,
  batchCompletions: batchQueue,
  events: eventsQueue,
} as const;

/** The kinds of work that a client sees in `GET /jobs/:id`. */
export const jobKinds = [...new Set(Object.values(queues).map(({ kind }) => kind))];
