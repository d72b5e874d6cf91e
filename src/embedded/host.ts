import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { makeLogger } from "../logger.ts";
import { withReleasers } from "../releasers.ts";
import { startMongoServer } from "./mongo/server.ts";
import { startRedisServer } from "./redis-server.ts";
import { socketFolder } from "./socket-folder.ts";

export type HostOptions = { dataDir: string; mongo: boolean; redis: boolean; logLevel: string };

/**
 * Hosts the embedded services of a data folder in this process, until told to close. The lock on the store's file keeps a
 * second host out.
 */
export function openHost(options: HostOptions) {
  return withReleasers(async (releasers) => {
    const { dataDir } = options;
    const sockets = await socketFolder(dataDir);
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    const logger = makeLogger({ level: options.logLevel, name: "embedded" });
    if (options.mongo) {
      const dataFile = join(dataDir, "store.sqlite");
      const mongo = await startMongoServer({ dataFile, socketPath: join(sockets, "mongo.sock"), logger });
      releasers.add(() => mongo.close());
    }
    if (options.redis) {
      const redis = await startRedisServer({ dir: join(dataDir, "redis"), socketPath: join(sockets, "redis.sock") });
      releasers.add(() => redis.close());
    }
    return { close: releasers.close };
  });
}

/** The process that `ensureServices` forks: told by IPC what to host, it lives as long as the one who forked it. */
async function runHost(): Promise<void> {
  const options = JSON.parse(process.argv[2] ?? "{}") as HostOptions; // written by ensure.ts
  const host = await openHost(options).catch(endIfTaken);
  let isClosing = false;
  const stop = async () => {
    if (isClosing) return;
    isClosing = true;
    await host.close();
    process.exit(0);
  };
  process.on("disconnect", stop);
  process.on("SIGTERM", stop);
  process.on("SIGINT", () => undefined); // Ctrl-C reaches the whole group; the parent says when it needs us no more
  if (process.connected) process.send?.({ type: "ready" });
  else await stop();
}

/** SQLITE_BUSY: another host was faster and has the file; whoever forked us finds its sockets. */
function endIfTaken(error: unknown): never {
  if (error instanceof Error && "errcode" in error && error.errcode === 5) process.exit(0);
  throw error;
}

if (import.meta.main) await runHost();
