import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { AppError, unavailable } from "../errors.ts";

/** Longest wait for a started server to serve (it reads its append-only file first), and to stop when told to, in ms. */
const START_TIMEOUT_MS = 25_000;
const STOP_TIMEOUT_MS = 10_000;
/** Longest wait for the answer to one command, in ms. */
const ANSWER_TIMEOUT_MS = 1_000;
/** How often the server is looked after, in ms. */
const WATCH_EVERY_MS = 500;

/** The machine's own server, else the one that `npm run setup` put beside the npm packages' commands. */
const binaries = ["redis-server", fileURLToPath(new URL("../../node_modules/.bin/redis-server", import.meta.url))];

export type RedisServer = { url: string; close(): Promise<void> };

/** `busy`: a server holds the socket and does not serve yet (`LOADING`), or is too slow to tell. */
export type RedisState = "serving" | "busy" | "gone";

/**
 * Starts a private redis-server on a Unix socket, with its append-only file in `dir`, and starts it again when it dies; one
 * that is there already (its host died, it did not) is adopted.
 * @throws AppError `unavailable` when it does not serve within 25 s, or the binary is missing.
 */
export async function startRedisServer(options: { dir: string; socketPath: string }): Promise<RedisServer> {
  const { dir, socketPath } = options;
  // A slow server is not a dead one: a second over the same append-only file would ruin it.
  const spawnIfGone = async () => {
    if ((await redisState(socketPath)) === "gone") await spawnServer(dir, socketPath);
  };
  await spawnIfGone();
  await untilServing(socketPath);
  const controller = new AbortController();
  const watching = keep(spawnIfGone, controller.signal);
  return {
    url: socketPath,
    async close() {
      controller.abort();
      await watching;
      await shutDown(socketPath);
    },
  };
}

/** Looks again and again whether the server is there, and starts it again when it has died. */
async function keep(spawnIfGone: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await delay(WATCH_EVERY_MS, undefined, { signal, ref: false }).catch(() => undefined); // aborted: the loop ends
    if (!signal.aborted) await spawnIfGone().catch(() => undefined); // not yet: clients see it, the next look tries again
  }
}

async function spawnServer(dir: string, socketPath: string): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const settings: Record<string, string> = {
    port: "0",
    unixsocket: socketPath,
    unixsocketperm: "700",
    dir,
    appendonly: "yes",
    appendfsync: "everysec",
    save: "",
    "maxmemory-policy": "noeviction",
    loglevel: "warning",
  };
  const server = await spawnFirst(Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]));
  const ended = new Promise<never>((_, reject) => {
    server.once("exit", (code) => reject(unavailable(`redis-server, which ended with code ${code},`)));
  });
  server.unref();
  await Promise.race([ended, untilServing(socketPath)]);
}

/** Runs the first of the binaries that is there. */
async function spawnFirst(args: string[]): Promise<ChildProcess> {
  let cause: unknown;
  for (const binary of binaries) {
    // Detached: Ctrl-C reaches a whole group of processes, and this one is needed until the workers have ended.
    const server = spawn(binary, args, { stdio: "ignore", detached: true });
    try {
      await once(server, "spawn");
      return server;
    } catch (error) {
      cause = error;
    }
  }
  const message = "There is no redis-server to start: run `npm run setup`, or set REDIS_URL.";
  throw new AppError("unavailable", message, { cause });
}

async function untilServing(socketPath: string): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while ((await redisState(socketPath)) !== "serving") {
    if (performance.now() > deadline) throw unavailable("redis-server");
    await delay(20);
  }
}

/** Whether a server holds the socket, and serves. */
export async function redisState(socketPath: string): Promise<RedisState> {
  const answer = await ask(socketPath, "PING");
  if (answer === null) return "gone";
  return answer.startsWith("+PONG") ? "serving" : "busy";
}

async function shutDown(socketPath: string): Promise<void> {
  const deadline = performance.now() + STOP_TIMEOUT_MS;
  await ask(socketPath, "SHUTDOWN NOSAVE");
  while ((await redisState(socketPath)) !== "gone") {
    if (performance.now() > deadline) throw unavailable("redis-server, which does not stop,");
    await delay(20);
  }
}

/** Sends one inline command; the answer's first bytes, "" when none came within a second, null when nobody listens. */
function ask(socketPath: string, command: string): Promise<string | null> {
  return new Promise((resolve) => {
    let answer: string | null = null;
    const socket = connect(socketPath, () => {
      answer = "";
      socket.write(`${command}\r\n`);
    });
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => socket.destroy());
    socket.on("data", (bytes) => {
      answer = String(bytes);
      socket.destroy();
    });
    socket.on("error", (error) => {
      // Anything but "nobody is there" (a full backlog, say) is a server that is busy.
      const isGone = "code" in error && (error.code === "ENOENT" || error.code === "ECONNREFUSED");
      if (!isGone) answer ??= "";
    });
    socket.on("close", () => resolve(answer));
  });
}
