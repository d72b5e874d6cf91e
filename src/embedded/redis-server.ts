import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { unavailable } from "../errors.ts";

/** Longest wait for a started server to answer, and for one that is told to stop, in ms. */
const START_TIMEOUT_MS = 10_000;
const STOP_TIMEOUT_MS = 10_000;
/** Longest wait for the answer to one command, in ms. */
const ANSWER_TIMEOUT_MS = 1_000;
/** How often the server is looked after, in ms. */
const WATCH_EVERY_MS = 500;

export type RedisServer = { url: string; close(): Promise<void> };

/**
 * Starts a private redis-server on a Unix socket, with its append-only file in `dir`, and starts it again when it dies; one
 * that answers there already (its host died, it did not) is adopted.
 * @throws AppError `unavailable` when it does not answer within 10 s, or the binary is missing.
 */
export async function startRedisServer(options: { dir: string; socketPath: string }): Promise<RedisServer> {
  const { dir, socketPath } = options;
  const spawnIfGone = async () => {
    if (!(await answers(socketPath))) await spawnServer(dir, socketPath);
  };
  await spawnIfGone();
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
  const server = spawn(
    "redis-server",
    Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]),
    { stdio: "ignore" },
  );
  const failed = new Promise<never>((_, reject) => {
    server.once("error", (error) => reject(unavailable("redis-server (run `npm run setup`)", error)));
    server.once("exit", (code) => reject(unavailable(`redis-server, which ended with code ${code},`)));
  });
  server.unref();
  await Promise.race([failed, untilAnswers(socketPath)]);
}

async function untilAnswers(socketPath: string): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (!(await answers(socketPath))) {
    if (performance.now() > deadline) throw unavailable("redis-server");
    await delay(20);
  }
}

/** Whether a server at the socket is ready to serve (`LOADING` is no yes). */
export async function answers(socketPath: string): Promise<boolean> {
  return (await ask(socketPath, "PING")).startsWith("+PONG");
}

async function shutDown(socketPath: string): Promise<void> {
  await ask(socketPath, "SHUTDOWN NOSAVE");
  const deadline = performance.now() + STOP_TIMEOUT_MS;
  while (await answers(socketPath)) {
    if (performance.now() > deadline) throw unavailable("redis-server, which does not stop,");
    await delay(20);
  }
}

/** Sends one inline command; the answer's first bytes, or nothing when nobody answers within a second. */
function ask(socketPath: string, command: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect(socketPath, () => socket.write(`${command}\r\n`));
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => socket.destroy());
    socket.on("data", (bytes) => {
      answer = String(bytes);
      socket.destroy();
    });
    socket.on("error", () => undefined); // nobody is there, which is an answer too
    socket.on("close", () => resolve(answer));
  });
}
