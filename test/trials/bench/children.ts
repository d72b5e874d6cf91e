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

/** Longest wait for a child's message, in ms. */
const ANSWER_TIMEOUT_MS = 60_000;

/** Starts a process of the bench (a path beside this file) and waits until it says `{ type: "ready" }`. */
export async function startChild(
  script: string,
  options: { env?: Record<string, string>; args?: string[]; flags?: readonly string[]; core?: number } = {},
): Promise<Child> {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const child = fork(path, options.args ?? [], {
    execArgv: [...process.execArgv, ...(options.flags ?? [])],
    env: { ...process.env, LOG_LEVEL: "info", ...options.env },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const receive = (type: string) => receiveFrom(child, script, type);
  const ready = await receive("ready");
  if (options.core !== undefined) pin(child.pid, options.core);
  return {
    process: child,
    ready,
    ask: (message) => {
      const response = receive("answer");
      child.send(message);
      return response;
    },
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, "exit");
      child.kill("SIGTERM");
      await gone;
    },
  };
}

/** The next message of a type from a child. @throws Error when it ends before, or says nothing for a minute. */
function receiveFrom(child: ChildProcess, script: string, type: string): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    const settle = (outcome: () => void) => {
      clearTimeout(timer);
      child.off("message", onMessage);
      child.off("exit", onExit);
      outcome();
    };
    const onMessage = (message: Record<string, unknown>) => {
      if (message.type === type) settle(() => resolve(message));
    };
    const onExit = () => settle(() => reject(new Error(`${script} ended before it said ${type}`)));
    const timer = setTimeout(() => settle(() => reject(new Error(`${script} did not say ${type}`))), ANSWER_TIMEOUT_MS);
    child.on("message", onMessage);
    child.on("exit", onExit);
  });
}

/** A thread that ends while `taskset` goes through them makes it fail. */
const PIN_ATTEMPTS = 5;

/** Keeps all threads of a process on one core, so that the generator does not take time from what it measures. */
function pin(pid: number | undefined, core: number): void {
  if (pid === undefined) return;
  for (let attempt = 1; ; attempt += 1) {
    try {
      execFileSync("taskset", ["-a", "-p", "-c", String(core), String(pid)], { stdio: "ignore" });
      return;
    } catch (error) {
      if (attempt === PIN_ATTEMPTS) throw error;
    }
  }
}
