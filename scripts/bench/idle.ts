import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { startChild } from "./children.ts";
import { format, type Measured } from "./goals.ts";
import { median } from "./measure.ts";
import { cpuMsOf, type Memory, memoryOf } from "./process-usage.ts";

/** Starts of which the median counts. The first one may have to fill caches, so there is one more before. */
const ROUNDS = 3;
/** Longest wait for a start, for the end, and for quiet, in ms. */
const TIMEOUT_MS = 60_000;
/** A process is idle when it took less than this of the processor, in ms, in the time of a look. */
const QUIET_MS = 100;
const LOOK_MS = 2_000;
/** What a part's command line has in it. */
const parts = {
  API: "api/server.ts",
  worker: "workers/main.ts",
  store: "embedded/host.ts",
  Redis: "redis-server",
  supervisor: "scripts/start.ts",
} as const;
type Part = keyof typeof parts;

/** Time until `npm start` is ready where all is installed, and the memory of what it has started once that is idle. */
export async function idleBench(): Promise<Measured[]> {
  await startOnce(); // fills the caches of a fresh installation
  const starts: Start[] = [];
  while (starts.length < ROUNDS) starts.push(await startOnce());
  const koa = await startChild("./children/idle-koa.ts");
  await untilQuiet([koa.process.pid]);
  const floor = await memoryOf(koa.process.pid);
  await koa.stop();
  for (const part of Object.keys(parts) as Part[]) console.log(`${part}: ${shown(memoryIn(starts, part))}`);
  const memoryLine = (part: Part, { must, aim }: { must: number; aim: number }): Measured => {
    const memory = memoryIn(starts, part);
    return {
      what: `resident memory of an idle ${part}, after \`npm start\``,
      anchor: `Koa alone ${shown(floor)}`,
      product: shown(memory),
      value: memory.residentMb,
      ...{ must, aim, isMoreBetter: false, unit: " MB" },
    };
  };
  const readyS = median(starts.map(({ readyMs }) => readyMs)) / 1_000;
  return [
    {
      what: "`npm start` until ready, when installed",
      anchor: "none",
      product: `${format(readyS)} s`,
      value: readyS,
      ...{ must: 3, aim: 2, isMoreBetter: false, unit: " s" },
    },
    memoryLine("API", { must: 130, aim: 120 }),
    memoryLine("worker", { must: 120, aim: 110 }),
  ];
}

const shown = ({ residentMb, proportionalMb }: Memory) => `${format(residentMb)} MB (PSS ${format(proportionalMb)})`;

/** The median of a part's memory. */
function memoryIn(starts: readonly Start[], part: Part): Memory {
  const medianOf = (read: (memory: Memory) => number) =>
    median(starts.flatMap(({ memory }) => memory[part].map((each) => read(each))));
  return { residentMb: medianOf((each) => each.residentMb), proportionalMb: medianOf((each) => each.proportionalMb) };
}

type Start = { readyMs: number; memory: Record<Part, Memory[]> };

/** Runs `npm start` on an empty data folder until it is idle, reads its memory, and stops it. */
async function startOnce(): Promise<Start> {
  const dataDir = await mkdtemp(join(tmpdir(), "switchyard-idle-"));
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, DATA_DIR: dataDir, PORT: "0" };
  const begun = performance.now();
  const npm = spawn("npm", ["start"], { env, stdio: ["ignore", "pipe", "inherit"], detached: true });
  try {
    await untilPrinted(npm, "Ctrl-C stops it.");
    const readyMs = performance.now() - begun;
    const processes = await descendantsOf(npm.pid);
    await untilQuiet(processes.map(({ pid }) => pid));
    const read = async (part: Part) => {
      const found = processes.filter(({ command }) => command.includes(parts[part]) && !/^(npm|sh) /.test(command));
      return Promise.all(found.map(({ pid }) => memoryOf(pid)));
    };
    const [API, worker, store, Redis, supervisor] = await Promise.all([
      read("API"),
      read("worker"),
      read("store"),
      read("Redis"),
      read("supervisor"),
    ]);
    return { readyMs, memory: { API, worker, store, Redis, supervisor } };
  } finally {
    await stop(npm);
    await rm(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }
}

/** @throws Error when the process ends before, or does not print it in time. */
async function untilPrinted(child: ChildProcess, text: string): Promise<void> {
  if (child.stdout === null) throw new TypeError("the output is not a pipe");
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  for await (const line of createInterface({ input: child.stdout, signal })) if (line.includes(text)) return;
  throw new Error(`npm start did not print "${text}"`);
}

/** Waits until none of the processes does more than its timers. @throws Error after a minute. */
async function untilQuiet(pids: readonly (number | undefined)[]): Promise<void> {
  const deadline = performance.now() + TIMEOUT_MS;
  const read = () => Promise.all(pids.map((pid) => cpuMsOf(pid).catch(() => 0))); // one has ended
  let before = await read();
  while (performance.now() < deadline) {
    await delay(LOOK_MS);
    const now = await read();
    if (now.every((ms, index) => ms - (before[index] ?? 0) < QUIET_MS)) return;
    before = now;
  }
  throw new Error("the processes did not become idle");
}

/** The processes below one, with their command lines. */
async function descendantsOf(root: number | undefined): Promise<{ pid: number; command: string }[]> {
  const numbers = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const all = await Promise.all(
    numbers.map(async (pid) => {
      const read = (file: string) => readFile(`/proc/${pid}/${file}`, "utf8").catch(() => ""); // it has ended
      const [status, command] = await Promise.all([read("status"), read("cmdline")]);
      return { pid, parent: Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]), command: command.replaceAll("\0", " ") };
    }),
  );
  const below = (pid: number | undefined): typeof all =>
    all.filter(({ parent }) => parent === pid).flatMap((each) => [each, ...below(each.pid)]);
  return below(root);
}

/** Ends npm; what it has started ends with it, and has the group for itself. */
async function stop(npm: ChildProcess): Promise<void> {
  const left = await descendantsOf(npm.pid);
  const gone = once(npm, "exit");
  if (npm.exitCode === null && npm.signalCode === null && npm.kill("SIGTERM")) await gone;
  const deadline = performance.now() + TIMEOUT_MS;
  const isAlive = async ({ pid }: { pid: number }) =>
    (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")) !== "";
  while ((await Promise.all(left.map(isAlive))).some(Boolean)) {
    if (performance.now() > deadline) throw new Error("what npm start has started did not end");
    await delay(100);
  }
}
