import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { MongoClient } from "mongodb";
import type { Config } from "../../src/config/config.ts";
import { ensureServices } from "../../src/embedded/ensure.ts";
import { withDisposables } from "../../src/lib/disposables.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { openRedis } from "../../src/store/redis/redis.ts";
import { documentPlaces, keysOf, type Place, redisPlaces, rejectSecrets, writtenPlaces } from "./secret-scan.ts";

/** The store and the Redis that the platforms of a run share, each with a database and a prefix of its own. */
export type SharedServices = {
  dataDir: string;
  /** All that a platform has in them. */
  read(config: Config): Promise<Place[]>;
  /** Removes all that a platform had in them. */
  clear(config: Config): Promise<void>;
  /** Stops them. No platform may have left a secret in their files, not even in a part that was deleted later. */
  close(): Promise<void>;
};

/** Names the data folder of the services of a parallel run to the processes that run its files. */
const FOLDER_VARIABLE = "SHARED_TEST_DATA_DIR";

let opening: Promise<SharedServices> | undefined;

/**
 * The shared services: started at the first call, or joined where the main process of a parallel run has started them.
 * `MONGODB_URL` and `REDIS_URL` replace their parts.
 */
export function shareServices(): Promise<SharedServices> {
  opening ??= openServices({
    mongoUrl: process.env.MONGODB_URL,
    redisUrl: process.env.REDIS_URL,
    dataDir: process.env[FOLDER_VARIABLE],
  });
  return opening;
}

/** Starts the shared services for the processes that this one will start. */
export async function offerSharedServices(): Promise<void> {
  process.env[FOLDER_VARIABLE] = (await shareServices()).dataDir;
}

/** For the end of the run, or of a file in a parallel run. */
export async function closeSharedServices(): Promise<void> {
  const services = await opening;
  opening = undefined;
  await services?.close();
}

function openServices(given: {
  mongoUrl?: string | undefined;
  redisUrl?: string | undefined;
  dataDir?: string | undefined;
}): Promise<SharedServices> {
  return withDisposables(async (disposables) => {
    const dataDir = given.dataDir ?? (await mkdtemp(join(tmpdir(), "switchyard-shared-")));
    const isEmbedded = { mongo: !given.mongoUrl, redis: !given.redisUrl };
    if (given.dataDir === undefined) {
      disposables.add(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }));
      if (isEmbedded.mongo && isEmbedded.redis) {
        disposables.add(async () => rejectSecrets(await writtenPlaces(dataDir)));
      }
    }
    const logger = makeLogger({ level: "silent", name: "shared" });
    const services = await ensureServices({
      dataDir,
      ...isEmbedded,
      logger,
    });
    disposables.add(() => services.close());
    const mongo = new MongoClient(given.mongoUrl || services.mongoUrl || "");
    disposables.add(() => mongo.close());
    /** A connection for the keys of a platform: in a cluster they are on a server of their own. */
    const withRedis = async <T>({ redis }: Config, work: (redis: Redis) => Promise<T>): Promise<T> => {
      const url = given.redisUrl || services.redisUrl || "";
      const isCluster = process.env.REDIS_CLUSTER === "true";
      const connections = await openRedis({ url, isCluster, prefix: redis.prefix, logger });
      try {
        return await work(connections.producer);
      } finally {
        await connections.close();
      }
    };
    return {
      dataDir,
      read: async (config) => [
        ...(await withRedis(config, (redis) => redisPlaces(redis, config.redis.prefix))),
        ...(await documentPlaces(mongo.db(config.mongo.db))),
      ],
      clear: async (config) => {
        await mongo.db(config.mongo.db).dropDatabase();
        await withRedis(config, async (redis) => {
          for await (const keys of keysOf(redis, config.redis.prefix)) if (keys.length > 0) await redis.unlink(keys);
        });
      },
      close: disposables.close,
    };
  });
}
