import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chown, copyFile, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { listen } from "../src/listen.ts";
import { buildImage, type Image } from "./image/build.ts";
import { readDockerfile } from "./image/dockerfile.ts";
import { commonFlags } from "./start/node-flags.ts";

const project = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");
/** The user `node` of the image; here `nobody`, where this program may become another user. */
const UNPRIVILEGED = 65_534;
const READY_TIMEOUT_MS = 60_000;
const END_TIMEOUT_MS = 20_000;
const KEY = `sk_${"k".repeat(32)}`;

const serveStore = `
  const [folder, dataDir] = process.argv.slice(2);
  const { ensureServices } = await import(folder + "/src/embedded/ensure.ts");
  const { makeLogger } = await import(folder + "/src/logger.ts");
  const logger = makeLogger({ level: "warn", name: "services" });
  const services = await ensureServices({ dataDir, mongo: true, redis: true, logger });
  const { mongoUrl, redisUrl } = services;
  process.once("SIGTERM", () => services.close());
  console.log(JSON.stringify({ mongoUrl, redisUrl }));
`;

const running: ChildProcess[] = [];

/**
 * `npm run image`: does what the Dockerfile says in a scratch folder, without a container engine (production packages, no
 * install scripts, an unprivileged user, a read-only tree), starts API and worker of it against servers of its own, and
 * ingests a document. Exit code 0 when all of that works.
 */
async function check(scratch: string): Promise<void> {
  const path = await makePath(scratch);
  const stages = readDockerfile(await readFile(join(project, "Dockerfile"), "utf8"));
  console.log("doing the steps of the Dockerfile …");
  const image = await buildImage({ project, scratch, stages, path });
  if (image.stage.user === undefined || image.stage.user === "root") throw new Error("the image runs as root");
  const dataDir = join(scratch, "data");
  await mkdir(dataDir, { mode: 0o700 });
  if (process.getuid?.() === 0) await chown(dataDir, UNPRIVILEGED, UNPRIVILEGED);
  const runIn = (command: readonly string[], env: Record<string, string>, isRead = false) =>
    start(image, { command, env, path, isRead });

  const servicesFile = join(scratch, "services.mjs");
  await writeFile(servicesFile, serveStore);
  const services = runIn(["node", servicesFile, image.workdir, dataDir], {}, true);
  const { mongoUrl, redisUrl } = JSON.parse(await firstLine(services));
  const [port, apiMetrics, workerMetrics] = await Promise.all([freePort(), freePort(), freePort()]);
  const env = {
    MONGODB_URL: mongoUrl,
    REDIS_URL: redisUrl,
    MASTER_KEY: randomBytes(32).toString("base64"),
    BOOTSTRAP_API_KEY: KEY,
    LOG_LEVEL: "warn",
  };
  const api = runIn(image.stage.command, { ...env, PORT: port, METRICS_PORT: apiMetrics });
  const worker = runIn(["node", ...commonFlags, "workers/main.ts"], { ...env, METRICS_PORT: workerMetrics });
  const url = `http://127.0.0.1:${port}`;
  await untilReady(`${url}/readyz`);
  console.log("/readyz answers 200");
  await exitCode(runIn(image.stage.healthCheck, { METRICS_PORT: apiMetrics }), "the health check");
  await ask(`${url}/rag/ingest`, { content: "Marmots whistle when an eagle comes near." }, 201);
  const { results } = await ask(`${url}/rag/query`, { query: "Who whistles?", topK: 1 }, 200);
  if (!Array.isArray(results) || results.length !== 1) throw new Error("the document is not found");
  console.log("a document is ingested and found");
  for (const process of [api, worker]) process.kill("SIGTERM");
  await Promise.all([exitCode(api, "the API"), exitCode(worker, "the worker")]);
  console.log("API and worker ended with code 0 at SIGTERM");
}

/** A PATH with the Node of this process and a redis-server that the unprivileged user may run. */
async function makePath(scratch: string): Promise<string> {
  const bin = join(scratch, "bin");
  await mkdir(bin);
  await copyFile(process.execPath, join(bin, "node"));
  const redis = join(project, "node_modules", ".bin", "redis-server");
  await realpath(redis).then(
    (found) => copyFile(found, join(bin, "redis-server")),
    () => symlink("/usr/bin/redis-server", join(bin, "redis-server")), // the machine has one of its own
  );
  return [bin, dirname(process.execPath), process.env.PATH ?? ""].join(delimiter);
}

type Run = { command: readonly string[]; env: Record<string, string>; path: string; isRead?: boolean };

/** Runs a command as the image would; `isRead`: this program reads its standard output. */
function start(image: Image, options: Run) {
  const [program = "", ...args] = options.command;
  const child = spawn(program, args, {
    cwd: image.workdir,
    env: { PATH: options.path, ...image.stage.env, HOST: "127.0.0.1", ...options.env },
    stdio: ["ignore", options.isRead ? "pipe" : "inherit", "inherit"],
    ...(process.getuid?.() === 0 ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}),
  });
  running.push(child);
  return child;
}

/** @throws Error when the process ends before it has printed a line. */
async function firstLine(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new TypeError("the output is not a pipe");
  const lines = createInterface(child.stdout);
  const [line] = await Promise.race([once(lines, "line"), once(lines, "close")]);
  if (typeof line !== "string") throw new Error(`${child.spawnargs.join(" ")} printed nothing`);
  return line;
}

async function exitCode(child: ChildProcess, what: string): Promise<void> {
  if (child.exitCode === null) await once(child, "exit", { signal: AbortSignal.timeout(READY_TIMEOUT_MS) });
  if (child.exitCode !== 0) throw new Error(`${what} ended with ${child.signalCode ?? `code ${child.exitCode}`}`);
}

/** Asks a process to end, and ends it for good when it does not within 20 s. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const kill = setTimeout(() => child.kill("SIGKILL"), END_TIMEOUT_MS);
  child.kill("SIGTERM");
  await once(child, "exit");
  clearTimeout(kill);
}

async function freePort(): Promise<string> {
  const server = createServer();
  const { port } = new URL(await listen(server, { host: "127.0.0.1", port: 0, setting: "PORT" }));
  await once(server.close(), "close");
  return port;
}

async function untilReady(url: string): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  for (;;) {
    const response = await fetch(url).catch(() => null);
    if (response?.status === 200) return;
    if (performance.now() > deadline) throw new Error(`not ready in time: ${await response?.text()}`);
    await delay(100);
  }
}

async function ask(url: string, body: unknown, expected: number): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (response.status !== expected) throw new Error(`${url}: ${response.status} ${text}`);
  return JSON.parse(text);
}

const scratch = await mkdtemp(join(tmpdir(), "switchyard-image-"));
try {
  await check(scratch);
} finally {
  // The store's process ends its Redis only when it is asked to end, and while its folder is there.
  await Promise.all(running.map(end));
  await rm(scratch, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
}
