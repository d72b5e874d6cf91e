import { type ChildProcess, fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { apiFlags, productFile, workerFlags } from "../../../scripts/start/children.ts";
import type { Freezer } from "./freezer.ts";

/** Longest wait for a process to be ready, and for one to end that was asked to, in ms. */
const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 30_000;
/** Wait after a start that failed, as while the store is unavailable, in ms. */
const START_AGAIN_MS = 250;
const PRLIMIT_TIMEOUT_MS = 5_000;

/** Code of a process that could not close in time, as while Redis is frozen (src/run-process.ts). */
const CUT_SHORT = 3;

type Role = "api" | "worker";
const scripts: Record<Role, string> = { api: "api/server.ts", worker: "workers/main.ts" };

/** A place for one process, which is started again in it whenever it was ended. */
type Slot = {
  name: string;
  role: Role;
  /** The folder of the release that it runs. */
  release: string;
  child?: ChildProcess;
  url?: string;
  /** Whether a fault is at work on it. */
  isTaken: boolean;
};

export type Fleet = {
  /** Where an API listens, one after the other, as a load balancer would choose; undefined while there is none. */
  nextUrl(): string | undefined;
  /** Ends a process of a role at once (`SIGKILL`) or politely (`SIGTERM`), and starts another after a while. False: none was free. */
  end(role: Role, how: { which: number; signal: "SIGKILL" | "SIGTERM"; awayMs: number }): Promise<boolean>;
  /** Stops a process of a role in the middle of whatever it does, and continues it after a while. False: none was free. */
  freeze(role: Role, how: { which: number; forMs: number }): Promise<boolean>;
  /** Asks all processes of a release to end, for good. */
  retire(release: string): Promise<void>;
  /** Processes that ended, or failed to end, by themselves, with what is known of it. */
  unexpected: string[];
  /** When each process ended, in ms since 1970, the first that was started first; infinite while it runs. */
  ends: number[];
  close(): Promise<void>;
};

type FleetOptions = {
  env: Record<string, string>;
  /** What one process alone has besides, by its number: the first that is started is 1. */
  envOf?(number: number): Record<string, string>;
  apis: number;
  workers: number;
  logDir: string;
  freezer: Freezer;
  /** Folders of releases, each of which has as many processes, started one release after the other; this checkout's alone if not given. */
  releases?: readonly string[];
  /** File descriptors that each process may have; those of this process where it is not given. */
  descriptors?: number;
};

/**
 * Starts the product's API and workers as processes of their own. Each that is ended, by whomever, is started again until the
 * fleet is closed. Their logs go to files in `logDir`.
 */
export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const { freezer, releases = [productFile("../..")] } = options;
  const unexpected: string[] = [];
  const ends: number[] = [];
  let isClosing = false;
  const run = async (slot: Slot): Promise<void> => {
    while (!isClosing) {
      const child = spawnInto(slot, options, ends);
      if (await becomesReady(slot, child)) return;
      await endNow(child);
      await delay(START_AGAIN_MS);
    }
  };
  const watch = (slot: Slot) => {
    const { child } = slot;
    child?.once("exit", (code, signal) => {
      delete slot.url;
      if (slot.isTaken || isClosing || slot.child !== child) return;
      unexpected.push(`${slot.name} ended by itself (${signal ?? `code ${code}`})`);
      void run(slot).then(() => watch(slot));
    });
  };
  const slots = releases.flatMap((release, at) =>
    makeSlots(options, { release, suffix: at === 0 ? "" : `-of-${at + 1}` }),
  );
  for (const release of releases) await Promise.all(slots.filter((slot) => slot.release === release).map(run));
  for (const slot of slots) watch(slot);

  const taking = async (role: Role, which: number, work: (slot: Slot, child: ChildProcess) => Promise<void>) => {
    const free = slots.filter((slot) => slot.role === role && !slot.isTaken && slot.child?.exitCode === null);
    const slot = free[Math.floor(which * free.length)];
    if (!slot?.child) return false;
    slot.isTaken = true;
    try {
      await work(slot, slot.child);
    } finally {
      slot.isTaken = false;
    }
    return true;
  };
  let turn = 0;
  return {
    unexpected,
    ends,
    nextUrl() {
      const urls = slots.flatMap(({ url }) => url ?? []);
      turn += 1;
      return urls[turn % Math.max(1, urls.length)];
    },
    end: (role, { which, signal, awayMs }) =>
      taking(role, which, async (slot, child) => {
        delete slot.url; // a balancer sends nothing more to a process that is ending
        const isGone = signal === "SIGKILL" ? endNow(child) : endPolitely(slot, child, unexpected);
        await isGone;
        await delay(awayMs);
        await run(slot);
        watch(slot);
      }),
    freeze: (role, { which, forMs }) =>
      taking(role, which, async (_slot, child) => {
        if (child.pid !== undefined) await freezer.freeze(child.pid, forMs);
      }),
    async retire(release) {
      const leaving = slots.filter((slot) => slot.release === release);
      for (const slot of leaving) slot.isTaken = true;
      await endAll(leaving, unexpected);
    },
    async close() {
      isClosing = true;
      await endAll(slots, unexpected);
    },
  };
}

/** Places for all processes of a release. */
function makeSlots(
  { apis, workers }: { apis: number; workers: number },
  { release, suffix }: { release: string; suffix: string },
): Slot[] {
  const make = (role: Role, count: number) =>
    Array.from(
      { length: count },
      (_, n): Slot => ({ name: `${role}-${n + 1}${suffix}`, role, release, isTaken: false }),
    );
  return [...make("api", apis), ...make("worker", workers)];
}

function spawnInto(
  slot: Slot,
  { env, envOf, logDir, descriptors }: Pick<FleetOptions, "env" | "envOf" | "logDir" | "descriptors">,
  ends: number[],
): ChildProcess {
  const number = ends.push(Number.POSITIVE_INFINITY);
  const child = fork(join(slot.release, scripts[slot.role]), {
    cwd: slot.release,
    execArgv: [...process.execArgv, ...(slot.role === "api" ? apiFlags : workerFlags)],
    env: { ...process.env, ...env, ...envOf?.(number) },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  child.once("exit", () => {
    ends[number - 1] = Date.now();
  });
  if (descriptors !== undefined) {
    const timeout = PRLIMIT_TIMEOUT_MS;
    spawnSync("prlimit", [`--pid=${child.pid}`, `--nofile=${descriptors}:${descriptors}`], { timeout }); // Linux alone has it
  }
  const log = createWriteStream(join(logDir, `${slot.name}.log`), { flags: "a" });
  for (const output of [child.stdout, child.stderr]) output?.pipe(log, { end: false });
  child.once("close", () => log.end());
  slot.child = child;
  return child;
}

/** Whether a process says that it is ready, before it ends or the time is over. */
async function becomesReady(slot: Slot, child: ChildProcess): Promise<boolean> {
  const signal = AbortSignal.timeout(START_TIMEOUT_MS);
  const ready = once(child, "message", { signal }).then(([message]) => message as { url?: string }); // of runProcess
  const ended = once(child, "exit", { signal }).then(() => undefined);
  const message = await Promise.race([ready, ended]).catch(() => undefined); // not within its time
  for (const late of [ready, ended]) late.catch(() => undefined);
  if (message?.url !== undefined) slot.url = message.url;
  return message !== undefined;
}

async function endNow(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

function endAll(slots: readonly Slot[], unexpected: string[]): Promise<unknown> {
  return Promise.all(
    slots.map(async (slot) => {
      delete slot.url;
      if (slot.child) await endPolitely(slot, slot.child, unexpected);
    }),
  );
}

/** Asks a process to end; one that does not end in time, or ends with another code, is reported. */
async function endPolitely(slot: Slot, child: ChildProcess, unexpected: string[]): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  const kill = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
  const [code, signal] = await gone;
  clearTimeout(kill);
  if (code !== 0 && code !== CUT_SHORT)
    unexpected.push(`${slot.name}, asked to end, ended with ${signal ?? `code ${code}`}`);
}
