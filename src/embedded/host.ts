import { join } from "node:path";
import { withDisposables } from "../lib/disposables.ts";
import { AppError } from "../lib/errors.ts";
import { lockFile } from "../lib/lock-file.ts";
import { openDataFolder } from "../lib/private-files.ts";
import { makeLogger } from "../observe/logger.ts";
import { startMongoServer } from "./mongo/server.ts";
import { startRedisServer } from "./redis-server.ts";
import { openServiceSecrets } from "./service-secrets.ts";
import { openSocketFolder } from "./socket-folder.ts";

/** Longest time to close, in ms; the process that forked the host waits a little longer. */
const CLOSE_TIMEOUT_MS = 14_000;

export type HostOptions = { dataDir: string; mongo: boolean; redis: boolean; syncWrites: boolean; logLevel: string };
/** What a host reports to the process that forked it. */
export type HostMessage = { type: "ready" } | { type: "failed"; message: string };

/** Hosts the services of a data folder until closed; a lock, on the store's file or its own, keeps others out. */
function openHost(options: HostOptions) {
  return withDisposables(async (disposables) => {
    const { dataDir } = options;
    const logger = makeLogger({ level: options.logLevel, name: "embedded" });
    const { isListable } = await openDataFolder(dataDir);
    if (isListable) logger.warn({ dataDir }, "other users can list the data folder, though not read its files");
    const secrets = await openServiceSecrets(dataDir);
    const sockets = await openSocketFolder(dataDir);
    disposables.add(() => sockets.tidy());
    if (options.mongo) {
      const dataFile = join(dataDir, "store.sqlite");
      const mongo = await startMongoServer({
        dataFile,
        socketPath: sockets.mongo,
        password: secrets.mongo,
        syncWrites: options.syncWrites,
        logger,
      });
      disposables.add(() => mongo.close());
    } else {
      disposables.add(lockFile(join(dataDir, "host.lock")));
    }
    if (options.redis) {
      const redis = await startRedisServer({ dir: join(dataDir, "redis"), socketPath: sockets.redis, secrets });
      disposables.add(() => redis.close());
    }
    return { close: disposables.close };
  });
}

/** The process that `ensureServices` forks. Its argument says what to host. It ends when its parent does. */
async function runHost(): Promise<void> {
  process.umask(0o077); // every file of the store and of Redis is for this user alone, from the moment it is made
  const options = JSON.parse(process.argv[2] ?? "{}") as HostOptions; // written by ensure.ts
  // Whoever needs it ended meanwhile: what is open by then ends with this process, Redis too.
  const giveUp = () => process.exit(1);
  process.on("disconnect", giveUp);
  const host = await openHost(options).catch(endWithReason);
  process.off("disconnect", giveUp);
  let isClosing = false;
  const stop = async () => {
    if (isClosing) return;
    isClosing = true;
    // Nobody may be left to end us. The store loses nothing by it.
    setTimeout(() => process.exit(1), CLOSE_TIMEOUT_MS).unref();
    await host.close();
    process.exit(0);
  };
  process.on("disconnect", stop);
  process.on("SIGTERM", stop);
  process.on("SIGINT", () => undefined); // Ctrl-C reaches the whole group; the parent says when it needs us no more
  if (process.connected) await report({ type: "ready" });
  else await stop();
}

/** Ends this process: quietly when another host was faster, whose sockets our parent finds, else with the reason. */
async function endWithReason(error: unknown): Promise<never> {
  const isTaken = error instanceof Error && "errcode" in error && error.errcode === 5; // SQLITE_BUSY
  if (!isTaken && process.connected) {
    const reason = error instanceof Error ? error.message : String(error);
    const message = error instanceof AppError ? reason : `The embedded store does not start: ${reason}`;
    await report({ type: "failed", message });
  }
  process.exit(isTaken ? 0 : 1);
}

/** Resolves when the message is on its way, or the parent is gone. */
function report(message: HostMessage): Promise<void> {
  return new Promise((resolve) => {
    process.send?.(message, undefined, undefined, () => resolve());
  });
}

if (import.meta.main) await runHost();
