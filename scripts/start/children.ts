import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** Longest wait for a process to be ready, and for one that was asked to end, in ms. */
const START_TIMEOUT_MS = 60_000;
const STOP_SLACK_MS = 5_000;
/** Wait before a process that died is started again, in ms: doubles each time, up to the second. */
const RESTART_FROM_MS = 200;
const RESTART_TO_MS = 10_000;

export type Supervised = {
  /** What the process said when it was ready first. */
  ready: Record<string, unknown>;
  close(): Promise<void>;
};

/** Runs a process of the product and starts it again when it dies, until closed. */
export async function supervise(options: {
  script: string;
  env: Record<string, string>;
  graceMs: number;
  onRestart(code: number | null, signal: string | null): void;
}): Promise<Supervised> {
  const controller = new AbortController();
  const first = await startOnce(options);
  let current = first.child;
  const keep = async () => {
    let waitMs = RESTART_FROM_MS;
    while (!controller.signal.aborted) {
      if (current.exitCode === null && current.signalCode === null) {
        await once(current, "exit", { signal: controller.signal }).catch(() => undefined); // aborted: the loop ends
      }
      if (controller.signal.aborted) return;
      options.onRestart(current.exitCode, current.signalCode);
      await delay(waitMs);
      waitMs = Math.min(waitMs * 2, RESTART_TO_MS);
      if (!controller.signal.aborted) current = fork(options.script, { env: options.env, stdio: "inherit" });
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

async function startOnce(options: { script: string; env: Record<string, string> }) {
  const child = fork(options.script, { env: options.env, stdio: "inherit" });
  const signal = AbortSignal.timeout(START_TIMEOUT_MS);
  const died = once(child, "exit", { signal }).then(([code]) => {
    throw new Error(`${options.script} ended with code ${code} before it was ready`);
  });
  const [ready] = (await Promise.race([once(child, "message", { signal }), died])) as [Record<string, unknown>];
  return { child, ready };
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
