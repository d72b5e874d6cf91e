import { ensureServices } from "../../src/embedded/ensure.ts";
import { makeLogger } from "../../src/logger.ts";
import { openRedis } from "../../src/redis.ts";

/** Holds the embedded services of a folder, and writes to Redis all the time, until SIGTERM; for tests that end all of it. */
const [dataDir = ""] = process.argv.slice(2);
const logger = makeLogger({ level: "silent", name: "test" });
const services = await ensureServices({ dataDir, mongo: false, redis: true, logger });
process.on("SIGTERM", () => void services.close().finally(() => process.exit(0)));
const { producer } = await openRedis({ url: services.redisUrl ?? "", prefix: "test", logger });
for (let n = 0; ; n += 1) await producer.set(`key:${n % 1_000}`, "x".repeat(1_000)).catch(() => undefined);
