import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { AppError, unavailable } from "../lib/errors.ts";
import { keepDoing } from "../lib/keep-doing.ts";
import { openPrivateFolder, rejectForeignEntry } from "../lib/private-files.ts";
import type { ServiceSecrets } from "./service-secrets.ts";

/** Longest wait for a started server to serve (it reads its append-only file first), and to stop when asked to, in ms. */
const START_TIMEOUT_MS = 25_000;
const STOP_TIMEOUT_MS = 10_000;
/** Longest wait for the answer to one command, in ms. */
const ANSWER_TIMEOUT_MS = 1_000;
/** How often the server is looked after, in ms. */
const WATCH_EVERY_MS = 500;

/** The server that `npm run setup` put beside the npm packages' commands, for a machine that has none. */
const ownBinary = fileURLToPath(new URL("../../node_modules/.bin/redis-server", import.meta.url));
/** The exit code of a shell that finds no command. */
const NOT_FOUND = 127;

/**
 * Runs the server, with its settings from descriptor 3, and ends it when descriptor 0 is closed, however the process at its
 * other end has ended: by SIGTERM, and by SIGKILL when it has not ended after 5 s, as when it cannot save or is frozen.
 */
const KEEPER = `
redis=$(command -v redis-server) || redis=$1
[ -x "$redis" ] || exit ${NOT_FOUND}
exec 4<&0
"$redis" - 0<&3 3<&- 4<&- &
server=$!
exec 3<&-
(
  read -r _ <&4
  kill -TERM $server
  n=0
  while kill -0 $server 2>/dev/null && [ $n -lt 50 ]; do sleep 0.1; n=$((n + 1)); done
  kill -KILL $server
) 2>/dev/null &
watcher=$!
wait $server
code=$?
kill $watcher 2>/dev/null
exit $code
`;

/** Where the server listens, and what it and its clients prove themselves by. */
export type RedisPlace = { socketPath: string; secrets: ServiceSecrets };

/**
 * What is found at a socket. `busy`: a server holds it and does not serve yet (`LOADING`), or answers too slowly.
 * `foreign`: what answers there does not know the secrets.
 */
type ServerState = "serving" | "busy" | "gone" | "foreign";

/**
 * Starts a private redis-server on a Unix socket, with its append-only file in `dir`, and starts it again when it dies. It ends
 * with this process for sure. One that is there already, of a host that is ending, is used until it is gone.
 * @throws AppError `unavailable` when it does not serve within 25 s, the binary is missing, or another server is there.
 */
export async function startRedisServer(options: RedisPlace & { dir: string }) {
  const { dir, ...place } = options;
  // A slow server is not a dead one: a second over the same append-only file would ruin it.
  let keeper: ChildProcess | undefined;
  const spawnIfGone = async () => {
    if ((await redisState(place)) !== "gone") return;
    if (keeper) await endKept(keeper); // one that lost its socket is not left behind
    keeper = await spawnServer(dir, place);
    await untilStarted(keeper, place);
  };
  await spawnIfGone();
  await untilServing(place);
  // A server that cannot be started yet is seen by the clients, and the next look tries again.
  const watching = keepDoing(spawnIfGone, { everyMs: WATCH_EVERY_MS, onError: () => undefined });
  return {
    url: redisUrl(place),
    async close() {
      await watching.stop();
      if (keeper) await endKept(keeper);
      await shutDown(place);
    },
  };
}

/** For the client: the path of the socket, with the password. */
export function redisUrl({ socketPath, secrets }: RedisPlace): string {
  return `${socketPath}?password=${secrets.redis}`;
}

async function spawnServer(dir: string, { socketPath, secrets }: RedisPlace): Promise<ChildProcess> {
  await openPrivateFolder(dir);
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
    requirepass: secrets.redis,
    // Of use to a replica only, which this is not: clients read it back, and so know whose server it is.
    masterauth: secrets.redisProof,
  };
  // Detached: Ctrl-C reaches a whole group of processes, and this one is needed until the workers have ended.
  const stdio = ["pipe", "ignore", "ignore", "pipe"] as const;
  const keeper = spawn("/bin/sh", ["-c", KEEPER, "redis-keeper", ownBinary], { stdio: [...stdio], detached: true });
  const [, , , config] = keeper.stdio;
  for (const stream of [keeper.stdin, config]) stream?.on("error", () => undefined); // it has ended, and its exit code says why
  await once(keeper, "spawn");
  // By a descriptor: any user can read the arguments of a process.
  if (config && "end" in config) config.end(toRedisConfig(settings));
  keeper.unref();
  return keeper;
}

/** Waits until the server serves. @throws AppError `unavailable` when it does not, or ends. */
async function untilStarted(keeper: ChildProcess, place: RedisPlace): Promise<void> {
  const ended = once(keeper, "exit").then(([code]) => {
    if (code !== NOT_FOUND) throw unavailable(`redis-server, which ended with code ${code},`);
    const message = "There is no redis-server to start: run `npm run setup`, or set REDIS_URL.";
    throw new AppError("unavailable", message);
  });
  ended.catch(() => undefined); // it ends sooner or later
  await Promise.race([ended, untilServing(place)]);
}

/** Ends the server of a keeper for sure. */
async function endKept(keeper: ChildProcess): Promise<void> {
  if (keeper.exitCode !== null || keeper.signalCode !== null) return;
  const gone = once(keeper, "exit");
  keeper.ref();
  keeper.stdin?.destroy();
  await gone;
}

function toRedisConfig(settings: Record<string, string>): string {
  const quote = (value: string) => JSON.stringify(value).replaceAll(/\\u00(..)/g, "\\x$1");
  const lines = Object.entries(settings).map(([name, value]) => `${name} ${quote(value)}\n`);
  return lines.join("");
}

/** Asks until the answer is yes. @throws AppError `unavailable`, about `what`, when it does not come in time. */
export async function untilTrue(
  isSo: () => Promise<boolean>,
  { what, everyMs, timeoutMs }: { what: string; everyMs: number; timeoutMs: number },
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw unavailable(what);
    await delay(everyMs);
  }
}

function untilServing(place: RedisPlace): Promise<void> {
  const isServing = () => isOwn(place.socketPath, () => redisState(place));
  return untilTrue(isServing, { what: "redis-server", everyMs: 20, timeoutMs: START_TIMEOUT_MS });
}

/** Whether the server at a socket is ours, and serves. @throws AppError `unavailable` when the socket or it is not ours. */
export async function isOwn(socketPath: string, findState: () => Promise<ServerState>): Promise<boolean> {
  await rejectForeignEntry(socketPath);
  const state = await findState();
  if (state !== "foreign") return state === "serving";
  const advice = "find out whose it is (`lsof -U`), stop it, and start again";
  const message = `What answers at ${socketPath} does not know the secret of the data folder: ${advice}.`;
  throw new AppError("unavailable", message);
}

/** Whether a server holds the socket, knows the secrets, and serves. */
export async function redisState({ socketPath, secrets }: RedisPlace): Promise<ServerState> {
  const response = await ask(socketPath, [`AUTH ${secrets.redis}`, "CONFIG GET masterauth", "PING"]);
  if (response === null) return "gone";
  const isServing = response.includes("+PONG");
  if (response.includes(secrets.redisProof)) return isServing ? "serving" : "busy";
  return isServing || /^-(WRONGPASS|NOAUTH|NOPERM|ERR AUTH)/m.test(response) ? "foreign" : "busy";
}

async function shutDown(place: RedisPlace): Promise<void> {
  await ask(place.socketPath, [`AUTH ${place.secrets.redis}`, "SHUTDOWN NOSAVE"]);
  const what = "redis-server, which does not stop,";
  const isGone = async () => (await redisState(place)) === "gone";
  await untilTrue(isGone, { what, everyMs: 20, timeoutMs: STOP_TIMEOUT_MS });
}

/** Sends inline commands; their answers, as far as they came within a second, null when no process listens. */
function ask(socketPath: string, commands: readonly string[]): Promise<string | null> {
  return new Promise((resolve) => {
    let response: string | null = null;
    const socket = connect(socketPath, () => {
      response = "";
      socket.write([...commands, "QUIT", ""].join("\r\n")); // it closes the connection behind its answers
    });
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => socket.destroy());
    socket.on("data", (bytes) => {
      response = `${response ?? ""}${bytes}`;
    });
    socket.on("error", (error) => {
      // Any error but "no server listens" (a full backlog, say) means a busy server.
      const isGone = "code" in error && (error.code === "ENOENT" || error.code === "ECONNREFUSED");
      if (!isGone) response ??= "";
    });
    socket.on("close", () => resolve(response));
  });
}
