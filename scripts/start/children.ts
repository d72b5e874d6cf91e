import { type ChildProcess, fork } from "node:child_process";
import { on, once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/**
 * Node's flags for an API that another process starts. The image's entry point and the scripts of package.json say the same,
 * since Node takes this flag on its command line alone: NODE_OPTIONS refuses it.
 *
 * Uploaded files, vectors and the messages to the store lie outside of V8's heap and count as its growth. Without the flag a
 * process that takes or indexes documents collects all of its garbage three times a second, which is a third of an API's main
 * thread and a seventh of a worker's time. The price: such a process holds up to 100 MB more; an idle one does not.
 */
export const apiFlags: readonly string[] = ["--initial-old-space-size=200"];

/**
 * Those of a worker, which holds less memory by two more. An API has a little less to do without them.
 *
 * - `--max-semi-space-size`: without it V8 grows its space for new objects to 128 MB while the modules are loaded, and a process
 *   that has work never gives that back. With it the space has 32 MB.
 * - `--heap-growing-percent`: without it a fast process lets its old space grow to a multiple of what is in use before its garbage
 *   is collected, and V8 keeps the pages. With it the space grows to twice as much.
 */
export const workerFlags: readonly string[] = [...apiFlags, "--max-semi-space-size=16", "--heap-growing-percent=100"];

/** Longest wait for a process to be ready, and beyond the grace of one that ends, in ms. */
const START_TIMEOUT_MS = 60_000;
const STOP_SLACK_MS = 5_000;
/** Wait before a process that died is started again, in ms: doubles each time, up to the second. */
const RESTART_FROM_MS = 200;
const RESTART_TO_MS = 10_000;
/** A process that has lived this long, in ms, is restarted with the first wait again. */
const STEADY_AFTER_MS = 60_000;

type Supervised = {
  /** What the process reported when it was first ready. */
  ready: Record<string, unknown>;
  close(): Promise<void>;
};

/** A process of ours ended before it was ready. It has printed why. */
export class StartFailure extends Error {
  override name = "StartFailure";
  readonly exitCode: number;

  constructor(exitCode: number | null) {
    super("Switchyard did not start.");
    this.exitCode = exitCode ?? 1;
  }
}

/** Runs a process of the product and starts it again when it dies, until closed. */
export async function supervise(options: {
  script: string;
  /** Flags of Node. */
  flags?: readonly string[];
  env: Record<string, string>;
  graceMs: number;
  /** What changes in the environment of later starts, by what the first one reported when it was ready. */
  envAgain?(ready: Record<string, unknown>): Record<string, string>;
  onRestart(code: number | null, signal: string | null): void;
}): Promise<Supervised> {
  const controller = new AbortController();
  const { signal } = controller;
  const first = await startOnce(options);
  let current = first.child;
  const again = { ...options, env: { ...options.env, ...options.envAgain?.(first.ready) } };
  const keep = async () => {
    let waitMs = RESTART_FROM_MS;
    while (!signal.aborted) {
      const since = performance.now();
      await untilGone(current, signal);
      if (signal.aborted) return;
      if (performance.now() - since > STEADY_AFTER_MS) waitMs = RESTART_FROM_MS;
      // Reported after the wait: a signal to the whole process group ends this child shortly before it reaches us.
      await delay(waitMs, undefined, { signal }).catch(() => undefined); // aborted: no restart
      waitMs = Math.min(waitMs * 2, RESTART_TO_MS);
      if (signal.aborted) return;
      options.onRestart(current.exitCode, current.signalCode);
      current = run(again);
    }
  };
  const keeping = keep();
  return {
    ready: first.ready,
    async close() {
      controller.abort();
      await keeping;
      await stop(current, options.graceMs);
    },
  };
}

type Program = { script: string; flags?: readonly string[]; env: Record<string, string> };

function run({ script, flags = [], env }: Program): ChildProcess {
  return fork(script, { env, execArgv: [...process.execArgv, ...flags], stdio: "inherit" });
}

/** Starts a process and waits until it is ready; one that is not in time is ended. @throws StartFailure when it ends before. */
async function startOnce(options: Program & { graceMs: number }) {
  const child = run(options);
  const signal = AbortSignal.timeout(START_TIMEOUT_MS);
  const died = once(child, "exit", { signal }).then(([code]) => {
    throw new StartFailure(code);
  });
  try {
    return { child, ready: await Promise.race([untilReady(child, signal), died]) };
  } catch (error) {
    await stop(child, 0);
    throw error;
  }
}

/** The message of a process that is ready. Under `node --watch` it first reports the files that it imports. */
async function untilReady(child: ChildProcess, signal: AbortSignal): Promise<Record<string, unknown>> {
  for await (const [message] of on(child, "message", { signal }) as AsyncIterable<[Record<string, unknown>]>) {
    if (message.type === "ready") return message;
  }
  throw new Error("the messages ended"); // `on` ends by its signal only, with an error
}

async function untilGone(child: ChildProcess, signal: AbortSignal): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  await once(child, "exit", { signal }).catch(() => undefined); // aborted: the caller looks at the signal
}

/** Asks a process to end, and ends it for good when it has not within its grace. */
async function stop(child: ChildProcess, graceMs: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  const kill = setTimeout(() => child.kill("SIGKILL"), graceMs + STOP_SLACK_MS);
  await gone;
  clearTimeout(kill);
}

/** The path of a file of the product, as `../../api/server.ts` from here. */
export function productFile(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url));
}
