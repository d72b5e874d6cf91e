import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { apiFlags, workerFlags } from "../../scripts/start/children.ts";

/** Longest time for a process to be ready, in ms. */
const START_TIMEOUT_MS = 30_000;

export type HostProcess = {
  child: ChildProcess;
  ready: Record<string, unknown>;
  /** Ends it at once, as a crash of the machine would, and waits until it is gone. */
  kill(): Promise<void>;
  /** Asks it to end, and answers its exit code. */
  stop(): Promise<number | null>;
};

/**
 * Starts `api/server.ts` or `workers/main.ts` as a process of its own and waits until it is ready. `onOutput` is given what
 * it writes to its standard output, its log.
 */
export async function startProcess(
  script: "api/server.ts" | "workers/main.ts" | "test/support/poison-worker.ts" | "test/support/measured-worker.ts",
  env: Record<string, string>,
  onOutput?: (text: string) => void,
) {
  const path = fileURLToPath(new URL(`../../${script}`, import.meta.url));
  const child = fork(path, {
    env: { ...process.env, ...env },
    execArgv: [...process.execArgv, ...(script === "api/server.ts" ? apiFlags : workerFlags)],
    stdio: ["ignore", onOutput ? "pipe" : "ignore", "inherit", "ipc"],
  });
  if (onOutput) child.stdout?.setEncoding("utf8").on("data", onOutput);
  const signal = AbortSignal.timeout(START_TIMEOUT_MS);
  const ended = once(child, "exit", { signal }).then(([code]) => {
    throw new Error(`${script} ended with code ${code} before it was ready`);
  });
  const [ready] = await Promise.race([once(child, "message", { signal }), ended]);
  ended.catch(() => undefined); // it ends sooner or later
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
    const gone = once(child, "exit");
    child.kill(signal);
    const [code] = await gone;
    return code as number | null;
  };
  const host: HostProcess = {
    child,
    ready: ready as Record<string, unknown>,
    kill: async () => void (await end("SIGKILL")),
    stop: () => end("SIGTERM"),
  };
  return host;
}
