import { type JobsOptions, Queue } from "bullmq";
import { unavailable } from "../errors.ts";
import type { Logger } from "../logger.ts";
import type { RedisConnections } from "../redis.ts";
import type { QueueDefinition } from "./define-queue.ts";

/** What of a record makes its BullMQ job. */
export type Enqueued = { jobId: string; payload: Record<string, unknown>; priority: number; notBefore?: Date };

export type QueueClient = {
  definition(queue: string): QueueDefinition;
  /**
   * Adds the BullMQ job of a record, under the record's id: adding it again while it is there changes nothing.
   * @throws AppError `unavailable` when Redis does not take it.
   */
  add(queue: string, job: Enqueued): Promise<void>;
  /** Which of the jobs BullMQ still holds as work to do (waiting, delayed or active). */
  findLive(queue: string, jobIds: readonly string[]): Promise<Set<string>>;
  /** Removes the BullMQ job, if it is there and nobody runs it. */
  remove(queue: string, jobId: string): Promise<void>;
  /** A queue itself, by its name. */
  find(name: string): Queue;
  /** The queues themselves, for Bull Board and health. */
  instances(): Queue[];
  close(): Promise<void>;
};

const liveStates = new Set(["waiting", "waiting-children", "prioritized", "delayed", "active"]);

/** The producer's side of every queue, on the connection that fails fast. */
export function openQueueClient(options: {
  redis: RedisConnections;
  definitions: readonly QueueDefinition[];
  logger: Logger;
}): QueueClient {
  const { redis, definitions, logger } = options;
  const byName = new Map(definitions.map((definition) => [definition.name, definition]));
  const open = new Map<string, Queue>();
  for (const { name } of definitions) {
    const queue = new Queue(name, { connection: redis.producer, prefix: redis.prefix });
    queue.on("error", (error) => logger.debug({ queue: name, err: { message: error.message } }, "queue error"));
    open.set(name, queue);
  }
  const find = (name: string): Queue => {
    const queue = open.get(name);
    if (!queue) throw new TypeError(`There is no queue ${name}`);
    return queue;
  };
  const definition = (name: string): QueueDefinition => {
    const found = byName.get(name);
    if (!found) throw new TypeError(`There is no queue ${name}`);
    return found;
  };
  const answered = async <T>(call: () => Promise<T>): Promise<T> => {
    try {
      return await call();
    } catch (error) {
      throw unavailable("The queue", error);
    }
  };
  return {
    definition,
    find,
    add: (name, job) =>
      answered(async () => {
        const { kind } = definition(name);
        await find(name).add(kind, job.payload, toOptions(definition(name), job));
      }),
    findLive: (name, jobIds) =>
      answered(async () => {
        const states = await Promise.all(jobIds.map((jobId) => find(name).getJobState(jobId)));
        return new Set(jobIds.filter((_, index) => liveStates.has(states[index] ?? "unknown")));
      }),
    remove: (name, jobId) => answered(async () => void (await find(name).remove(jobId))),
    instances: () => [...open.values()],
    close: async () => {
      await Promise.all([...open.values()].map((queue) => queue.close()));
    },
  };
}

function toOptions(definition: QueueDefinition, job: Enqueued): JobsOptions {
  return {
    jobId: job.jobId,
    priority: job.priority,
    attempts: 1, // the record counts tries, see workers/run-job.ts
    delay: job.notBefore ? Math.max(0, job.notBefore.getTime() - Date.now()) : 0,
    removeOnComplete: definition.keepCompleted,
    removeOnFail: definition.keepFailed,
  };
}
