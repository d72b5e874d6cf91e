import { Redis } from "ioredis";
import { MongoClient } from "mongodb";
import type { Services } from "../../../src/embedded/ensure.ts";
import type { Freezer } from "./freezer.ts";

/** Longest wait for a service's answer, in ms; one that is unavailable, or frozen, is not asked again. */
const ASK_TIMEOUT_MS = 1_000;

export type ServiceName = "redis" | "store";

/** The embedded services, as far as a fault is concerned. Each returns false when the service is unavailable just now. */
export type ServiceFaults = {
  /** Ends it with `SIGKILL`; its host restarts it. */
  kill(name: ServiceName): Promise<boolean>;
  freeze(name: ServiceName, forMs: number): Promise<boolean>;
  /** Removes everything from Redis. */
  loseRedis(): Promise<boolean>;
};

export function makeServiceFaults({ mongoUrl = "", redisUrl = "" }: Services, freezer: Freezer): ServiceFaults {
  const frozen = new Set<ServiceName>();
  const withRedis = async <T>(ask: (redis: Redis) => Promise<T>): Promise<T | undefined> => {
    const redis = new Redis(redisUrl, {
      lazyConnect: true,
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
      connectTimeout: ASK_TIMEOUT_MS,
      commandTimeout: ASK_TIMEOUT_MS,
    });
    redis.on("error", () => undefined); // the call that meets it throws it too
    try {
      await redis.connect();
      return await ask(redis);
    } catch {
      return undefined; // unavailable, as this program makes it
    } finally {
      redis.disconnect();
    }
  };
  const pidOf: Record<ServiceName, () => Promise<number | undefined>> = {
    redis: () => withRedis(async (redis) => Number(/process_id:(\d+)/.exec(await redis.info("server"))?.[1])),
    async store() {
      const options = { serverSelectionTimeoutMS: ASK_TIMEOUT_MS, socketTimeoutMS: ASK_TIMEOUT_MS };
      const client = new MongoClient(mongoUrl, options);
      try {
        return Number((await client.db("admin").command({ serverStatus: 1 })).pid);
      } catch {
        return undefined; // as above
      } finally {
        await client.close();
      }
    },
  };
  const taking = async (name: ServiceName, work: (pid: number) => Promise<void>) => {
    if (frozen.has(name)) return false;
    const pid = await pidOf[name]();
    if (pid === undefined || Number.isNaN(pid) || frozen.has(name)) return false;
    try {
      await work(pid);
      return true;
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ESRCH") return false; // gone in the meantime
      throw error;
    }
  };
  return {
    kill: (name) => taking(name, async (pid) => void process.kill(pid, "SIGKILL")),
    freeze: (name, forMs) =>
      taking(name, async (pid) => {
        frozen.add(name);
        try {
          await freezer.freeze(pid, forMs);
        } finally {
          frozen.delete(name);
        }
      }),
    loseRedis: async () => (await withRedis((redis) => redis.flushall())) !== undefined,
  };
}
