import { type ChildProcess, fork } from "node:child_process";
import { on, once } from "node:events";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { AppError, unavailable } from "../lib/errors.ts";
import { keepDoing } from "../lib/keep-doing.ts";
import { openDataFolder } from "../lib/private-files.ts";
import type { Logger } from "../observe/logger.ts";
import type { HostMessage, HostOptions } from "./host.ts";
import { proveServer, scramMechanism, scramUser } from "./mongo/wire/scram.ts";
import { isOwn, redisState, redisUrl, untilTrue } from "./redis-server.ts";
import { openServiceSecrets, type ServiceSecrets } from "./service-secrets.ts";
import { openSocketFolder } from "./socket-folder.ts";

/** How often a process looks whether the services are still there, to host them itself when they are not, in ms. */
const WATCH_EVERY_MS = 500;
/** Longest time between two attempts to host services that do not start, in ms. */
const RETRY_AT_MOST_MS = 10_000;
/** Longest wait until the services answer, in ms: a large store takes a while to open. */
const START_TIMEOUT_MS = 30_000;
/** How long the last word of a host that has ended may still be on its way, in ms. */
const LAST_WORD_MS = 50;
/** Longest wait for a host to close its files, in ms. */
const STOP_TIMEOUT_MS = 15_000;

/** The URLs hold passwords: they are for clients, never for a log or for the arguments of a process. */
export type Services = {
  mongoUrl?: string;
  redisUrl?: string;
  /** Whether another process hosts them. */
  isJoined?: boolean;
  close(): Promise<void>;
};

/**
 * Starts the embedded services of a data folder in a process of their own, or joins those that run. Every process that
 * needs them may call it; the first one hosts them. While open it watches: when the host dies, another process that
 * still needs the services becomes the host, and clients find them at the same sockets.
 * What listens there already must prove that it knows the secret of the data folder, as every client must.
 * @throws AppError `unavailable` when they do not start (the message says why), do not answer within 30 s, or folder or
 * services are not those of this user.
 */
export async function ensureServices(options: {
  dataDir: string;
  mongo: boolean;
  redis: boolean;
  logger: Logger;
  /** Whether the store acknowledges a write only when it is on the disk: no when not given. */
  syncWrites?: boolean;
  /** The level of the log of the process that hosts them; that of `logger` when not given. */
  hostLogLevel?: string;
}): Promise<Services> {
  const { dataDir, mongo, redis, logger, syncWrites = false, hostLogLevel = logger.level } = options;
  await openDataFolder(dataDir);
  const secrets = await openServiceSecrets(dataDir);
  const sockets = await openSocketFolder(dataDir);
  const redisPlace = { socketPath: sockets.redis, secrets };
  let host: ChildProcess | undefined;
  const hostIfGone = async () => {
    // A host looks after its Redis itself, so where the store listens there is one.
    if (mongo ? await isListening(sockets.mongo) : (await redisState(redisPlace)) !== "gone") return;
    if (host && host.exitCode === null && host.signalCode === null) return; // it is still starting
    host = forkHost({ dataDir, mongo, redis, syncWrites, logLevel: hostLogLevel });
    await untilHosting(host);
  };
  const areServing = async () => {
    await hostIfGone();
    return (
      (!mongo || (await isOwn(sockets.mongo, () => proveServer(sockets.mongo, secrets.mongo)))) &&
      (!redis || (await isOwn(sockets.redis, () => redisState(redisPlace))))
    );
  };
  await untilTrue(areServing, { what: "The embedded store", everyMs: 100, timeoutMs: START_TIMEOUT_MS });

  const watching = keepDoing(hostIfGone, {
    everyMs: WATCH_EVERY_MS,
    atMostMs: RETRY_AT_MOST_MS,
    onError: (error, retryInMs) =>
      logger.error({ err: error, retryInMs }, "the embedded services could not be started again; trying on"),
  });
  return {
    ...(mongo ? { mongoUrl: mongoUrl(sockets.mongo, secrets) } : {}),
    ...(redis ? { redisUrl: redisUrl(redisPlace) } : {}),
    isJoined: host === undefined,
    async close() {
      await watching.stop();
      if (host) await stopHost(host);
    },
  };
}

function mongoUrl(socketPath: string, { mongo }: ServiceSecrets): string {
  const options = `directConnection=true&authMechanism=${scramMechanism}&authSource=admin`;
  return `mongodb://${scramUser}:${mongo}@${encodeURIComponent(socketPath)}/?${options}`;
}

/**
 * Node's flags for a host. Messages and vectors lie outside of V8's heap and count as its growth: without the flag a host that
 * takes files collects all of its garbage up to ten times a second. From this size on, in MB, it does, every few seconds.
 */
const hostFlags = ["--initial-old-space-size=128"];

function forkHost(options: HostOptions): ChildProcess {
  const path = fileURLToPath(new URL("./host.ts", import.meta.url));
  const execArgv = [...process.execArgv, ...hostFlags];
  return fork(path, [JSON.stringify(options)], { execArgv, stdio: ["ignore", "inherit", "inherit", "ipc"] });
}

/** Waits until a host serves, or has ended because another was faster. */
async function untilHosting(host: ChildProcess): Promise<void> {
  const controller = new AbortController();
  const { signal } = controller;
  const ended = once(host, "exit", { signal }).then(async ([code]) => {
    await delay(LAST_WORD_MS);
    if (code !== 0 && code !== null) throw unavailable("The embedded store");
  });
  try {
    await Promise.race([untilSaid(host, signal), ended]);
  } finally {
    controller.abort();
  }
}

/** Waits for a host's report; under `node --watch` the host sends the names of its files first. */
async function untilSaid(host: ChildProcess, signal: AbortSignal): Promise<void> {
  for await (const [message] of on(host, "message", { signal }) as AsyncIterable<[Partial<HostMessage>]>) {
    if (message.type === "ready") return;
    if (message.type === "failed")
      throw new AppError("unavailable", message.message ?? "The embedded store has failed.");
  }
}

async function stopHost(host: ChildProcess): Promise<void> {
  if (host.exitCode !== null || host.signalCode !== null) return;
  const gone = once(host, "exit");
  const kill = setTimeout(() => host.kill("SIGKILL"), STOP_TIMEOUT_MS);
  if (host.connected) host.disconnect();
  await gone;
  clearTimeout(kill);
}

async function isListening(socketPath: string): Promise<boolean> {
  const socket = connect(socketPath);
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false; // no process listens
  } finally {
    socket.destroy();
  }
}
