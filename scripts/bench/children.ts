import { type ChildProcess, execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export type Child = {
  process: ChildProcess;
  /** What the child sent when it was ready. */
  ready: Record<string, unknown>;
  /** Asks the child something over IPC and waits for its answer. */
  ask(message: Record<string, unknown>): Promise<Record<string, unknown>>;
  stop(): Promise<void>;
};

/** Starts a process of the bench (a path beside this file) and waits until it says `{ type: "ready" }`. */
export async function startChild(
  script: string,
  options: { env?: Record<string, string>; args?: string[]; core?: number } = {},
): Promise<Child> {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const child = fork(path, options.args ?? [], {
    env: { ...process.env, LOG_LEVEL: "error", ...options.env },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const receive = async (type: string): Promise<Record<string, unknown>> => {
    const deadline = AbortSignal.timeout(60_000);
    const gone = once(child, "exit", { signal: deadline }).then(() => {
      throw new Error(`${script} ended before it said ${type}`);
    });
    const answer = (async () => {
      for (;;) {
        const [message] = await once(child, "message", { signal: deadline });
        if (message?.type === type) return message as Record<string, unknown>;
      }
    })();
    return Promise.race([answer, gone]);
  };
  const ready = await receive("ready");
  if (options.core !== undefined) pin(child.pid, options.core);
  return {
    process: child,
    ready,
    ask: (message) => {
      const answer = receive("answer");
      child.send(message);
      return answer;
    },
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, "exit");
      child.kill("SIGTERM");
      await gone;
    },
  };
}

/** Keeps all threads of a process on one core, so that the generator does not take time from what it measures. */
function pin(pid: number | undefined, core: number): void {
  if (pid !== undefined) execFileSync("taskset", ["-a", "-p", "-c", String(core), String(pid)], { stdio: "ignore" });
}
