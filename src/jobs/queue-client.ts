import { type JobsOptions, Queue, RedisConnection } from "bullmq";
import { unavailable } from "../lib/errors.ts";
import { withTimeout } from "../lib/with-timeout.ts";
import type { Logger } from "../observe/logger.ts";
import { type RedisConnections, toRedisError } from "../store/redis/redis.ts";
import type { QueueDefinition } from "./queues.ts";

/** The part of a record from which its BullMQ job is made. */
export type Enqueued = { jobId: string; payload: Record<string, unknown>; priority: number; notBefore?: Date };

/** Finished BullMQ jobs of a queue that Redis keeps for operators; the record is kept longer. Age in seconds. */
export const KEEP_COMPLETED = { age: 3_600, count: 1_000 };
const KEEP_FAILED = { age: 86_400, count: 1_000 };

const liveStates = new Set(["waiting", "waiting-children", "prioritized", "delayed", "active"]);

/** Longest wait at start for the queues of a Redis that has just answered, in ms. */
const OPEN_TIMEOUT_MS = 10_000;

/**
 * BullMQ is not to ask for the version: it would keep the failure of one slow answer for good. By this it knows the least that
 * it can count on (src/store/redis/redis-server-info.ts looks at the real one).
 */
RedisConnection.minimumVersion = "6.2.0";
export const skipVersionCheck = true;

export type QueueClient = Awaited<ReturnType<typeof openQueueClient>>;

/**
 * The producer's side of every queue, on the connection that fails fast.
 * @throws AppError `unavailable` when Redis is lost meanwhile.
 */
export async function openQueueClient(options: {
  redis: RedisConnections;
  definitions: readonly QueueDefinition[];
  logger: Logger;
}) {
  const { redis, definitions, logger } = options;
  const open = new Map(
    definitions.map(({ name, kind }) => {
      const queue = new Queue(name, { connection: redis.producer, prefix: redis.prefix, skipVersionCheck });
      queue.on("error", (error) => logger.debug({ queue: name, err: { message: error.message } }, "queue error"));
      return [name, { kind, queue }];
    }),
  );
  const find = (name: string) => {
    const found = open.get(name);
    if (!found) throw new TypeError(`There is no queue ${name}`);
    return found;
  };
  const all = () => [...open.values()].map(({ queue }) => queue);
  const answered = <T>(call: Promise<T>): Promise<T> =>
    call.catch((error) => {
      throw toRedisError(error) ?? unavailable("The queue", error);
    });
  const untilOpen = () => Promise.all(all().map((queue) => queue.waitUntilReady()));
  await answered(withTimeout(untilOpen(), OPEN_TIMEOUT_MS, () => unavailable("Redis")));
  return {
    /** A queue itself, by its name. */
    find: (name: string) => find(name).queue,
    /** Adds the BullMQ job of a record, once, under its id. @throws AppError `unavailable` when Redis refuses. */
    async add(name: string, job: Enqueued): Promise<void> {
      const { kind, queue } = find(name);
      await answered(queue.add(kind, job.payload, toOptions(job)));
    },
    /** Returns the jobs that BullMQ still holds as work to do (waiting, delayed or active). */
    async findLive(name: string, jobIds: readonly string[]): Promise<Set<string>> {
      const { queue } = find(name);
      const states = await answered(Promise.all(jobIds.map((jobId) => queue.getJobState(jobId))));
      return new Set(jobIds.filter((_, index) => liveStates.has(states[index] ?? "unknown")));
    },
    /** Removes the BullMQ job if it exists and no worker runs it. */
    remove: async (name: string, jobId: string): Promise<void> => void (await answered(find(name).queue.remove(jobId))),
    /** @throws AppError `unavailable` when jobs cannot be put onto the queues. */
    async check(): Promise<void> {
      await answered(Promise.all(all().map((queue) => queue.getJobCountByTypes("active"))));
    },
    /** The queues themselves, for Bull Board and health. */
    instances: all,
    async close(): Promise<void> {
      await Promise.all(all().map((queue) => queue.close()));
    },
  };
}

function toOptions(job: Enqueued): JobsOptions {
  return {
    jobId: job.jobId,
    priority: job.priority,
    attempts: 1, // the record counts attempts, see workers/run-job.ts
    delay: job.notBefore ? Math.max(0, job.notBefore.getTime() - Date.now()) : 0,
    removeOnComplete: KEEP_COMPLETED,
    removeOnFail: KEEP_FAILED,
  };
}
