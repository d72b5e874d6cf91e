import type { QueueDefinition } from "../src/jobs/define-queue.ts";
import { queues } from "../src/jobs/queues.ts";
import { workOf } from "../src/jobs/work.ts";
import type { Handler } from "./run-job.ts";

/** A queue with the handler of its jobs, the types of the payload forgotten. */
export type HandlerEntry = { queue: QueueDefinition; handler: Handler<QueueDefinition> };

/** Binds a queue to its handler; the shell parses the payload by the queue's own schema before it calls. */
export function bindHandler<Q extends QueueDefinition>(queue: Q, handler: Handler<Q>): HandlerEntry {
  return { queue, handler: handler as Handler<QueueDefinition> };
}

/** Every queue of the product: its jobs do the work that their payload names. */
export const handlers: readonly HandlerEntry[] = Object.values(queues).map((queue) =>
  bindHandler<QueueDefinition>(queue, (platform, { payload, attempt: _attempt, ...context }) => {
    const ids = payload as Record<string, unknown>; // every payload is an object of ids
    const work = workOf(platform.works, { queue: queue.name, payload: ids });
    if (!work) throw new TypeError(`No work has a job of the queue ${queue.name} with this payload.`);
    return work.run({ ...context, recordId: String(ids[work.idField]) });
  }),
);
