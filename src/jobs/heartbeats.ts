import { z } from "zod";
import { tryParseJson } from "../lib/try-parse-json.ts";
import type { RedisConnections } from "../store/redis/redis.ts";

/** How often a worker reports, and how long it counts as alive after a report, in ms. */
export const BEAT_EVERY_MS = 5_000;
const ALIVE_MS = 20_000;
/** Maximum workers listed, most recently started first. */
const MAX_LISTED = 500;

const count = z.number().int().min(0);

/** A worker process, as it reports itself. */
export const workerSchema = z.object({
  workerId: z.string(),
  host: z.string(),
  pid: count,
  version: z.string().describe("Of Switchyard"),
  node: z.string(),
  startedAt: z.iso.datetime(),
  seenAt: z.iso.datetime().describe("Its last report; one that is 20 s old is gone"),
  runningJobs: count,
  queues: z.array(z.object({ queue: z.string(), concurrency: count })),
});
export type WorkerView = z.output<typeof workerSchema>;

export type Heartbeats = ReturnType<typeof makeHeartbeats>;

/** Which workers are alive. Each reports itself to Redis, where a report expires by itself. */
export function makeHeartbeats({ producer, prefix }: Pick<RedisConnections, "producer" | "prefix">) {
  const index = `${prefix}:workers`;
  const keyOf = (workerId: string) => `${prefix}:worker:${workerId}`;
  return {
    async beat(worker: WorkerView): Promise<void> {
      const { workerId } = worker;
      const now = Date.parse(worker.seenAt);
      await producer.set(keyOf(workerId), JSON.stringify(worker), "PX", ALIVE_MS);
      await producer.zadd(index, now, workerId);
      await producer.zremrangebyscore(index, "-inf", now - ALIVE_MS);
      await producer.pexpire(index, ALIVE_MS);
    },
    /** The worker has ended. */
    async stop(workerId: string): Promise<void> {
      await producer.del(keyOf(workerId));
      await producer.zrem(index, workerId);
    },
    /** The workers that are alive, most recently started first. */
    async list(): Promise<WorkerView[]> {
      const ids = await producer.zrevrange(index, 0, MAX_LISTED - 1);
      if (ids.length === 0) return [];
      const texts = await producer.mget(ids.map(keyOf));
      const found = texts.flatMap((text) => {
        const parsed = workerSchema.safeParse(tryParseJson(text ?? ""));
        return parsed.success ? [parsed.data] : []; // a worker of another release, or one that has just ended
      });
      return found.sort((a, b) => b.startedAt.localeCompare(a.startedAt) || a.workerId.localeCompare(b.workerId));
    },
  };
}
