import { type ChildProcess, fork } from "node:child_process";
import { on, once } from "node:events";
import { basename } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** Longest wait for a process to be ready, and for one that was asked to end, in ms. */
const START_TIMEOUT_MS = 60_000;
const STOP_SLACK_MS = 5_000;
/** Wait before a process that died is started again, in ms: doubles each time, up to the second. */
const RESTART_FROM_MS = 200;
const RESTART_TO_MS = 10_000;
/** A process that has lived for so long, in ms, is started again without a longer wait than the first. */
const STEADY_AFTER_MS = 60_000;

export type Supervised = {
  /** What the process said when it was ready first. */
  ready: Record<string, unknown>;
  close(): Promise<void>;
};

/** Runs a process of the product and starts it again when it dies, until closed. */
export async function supervise(options: {
  script: string;
  /** What Node is told. */
  flags?: readonly string[];
  env: Record<string, string>;
  graceMs: number;
  /** What changes in the environment of later starts, by what the first one said when it was ready. */
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
      // Told after the wait: a signal to the whole group of processes ends this one a little before we hear of it.
      await delay(waitMs, undefined, { signal }).catch(() => undefined); // aborted: nothing is started any more
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

/** Starts a process and waits until it is ready; one that is not in time is ended. */
async function startOnce(options: Program & { graceMs: number }) {
  const child = run(options);
  const signal = AbortSignal.timeout(START_TIMEOUT_MS);
  const died = once(child, "exit", { signal }).then(([code]) => {
    throw new Error(`${basename(options.script)} ended with code ${code} before it was ready`);
  });
  try {
    return { child, ready: await Promise.race([untilReady(child, signal), died]) };
  } catch (error) {
    await stop(child, 0);
    throw error;
  }
}

/** What a process says when it is ready; under `node --watch` it tells which files it imports before. */
async function untilReady(child: ChildProcess, signal: AbortSignal): Promise<Record<string, unknown>> {
  for await (const [message] of on(child, "message", { signal }) as AsyncIterable<[Record<string, unknown>]>) {
    if (message.type === "ready") return message;
  }
  throw new Error("the messages ended"); // `on` ends by its signal only, with an error
}

async function untilGone(child: ChildProcess, signal: AbortSignal): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  await once(child, "exit", { signal }).catch(() => undefined); // aborted: whoever did looks at the signal
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
