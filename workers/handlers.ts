import type { QueueDefinition } from "../src/jobs/define-queue.ts";
import { type QueueName, type Queues, queues } from "../src/jobs/queues.ts";
import { runAgent } from "./agent-runs.ts";
import { runBatch } from "./batch-completions.ts";
import { runComposite } from "./composite-runs.ts";
import { runIngestion } from "./ingestion.ts";
import type { Handler } from "./run-job.ts";
import { runWorkflow } from "./workflow-steps.ts";

/** A queue with the handler of its jobs, the types of the payload forgotten. */
export type HandlerEntry = { queue: QueueDefinition; handler: Handler<QueueDefinition> };

/** Every queue's handler: one that is missing does not compile. */
const handlerOf: { [K in QueueName]: Handler<Queues[K]> } = {
  ingestion: runIngestion,
  agentRuns: runAgent,
  workflowSteps: runWorkflow,
  compositeRuns: runComposite,
  batchCompletions: runBatch,
};

/** Binds a queue to its handler; the shell parses the payload by the queue's own schema before it calls. */
export function bindHandler<Q extends QueueDefinition>(queue: Q, handler: Handler<Q>): HandlerEntry {
  return { queue, handler: handler as Handler<QueueDefinition> };
}

export const handlers: readonly HandlerEntry[] = [
  bindHandler(queues.ingestion, handlerOf.ingestion),
  bindHandler(queues.agentRuns, handlerOf.agentRuns),
  bindHandler(queues.workflowSteps, handlerOf.workflowSteps),
  bindHandler(queues.compositeRuns, handlerOf.compositeRuns),
  bindHandler(queues.batchCompletions, handlerOf.batchCompletions),
];
