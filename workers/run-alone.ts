import { fork } from "node:child_process";
import { once } from "node:events";
import type { Platform } from "../src/platform.ts";

/** Longest time for a child to open the platform and to take its job, in ms. */
const BEGIN_TIMEOUT_MS = 60_000;
/** How long a child may still be there when its job's own time is over, in ms. Then something blocks it. */
const SETTLE_MS = 30_000;
/** How long a child has to give its job back, in ms. */
const STOP_TIMEOUT_MS = 10_000;

/** A job for a process of its own, as its arguments say it. */
export type LoneJob = { queue: string; jobId: string };

/** What a child reports to its worker. */
export type LoneReport =
  /** It has the job: from now on, its end is the job's own doing. */
  | { kind: "begun" }
  /** The try has ended, and its outcome is on the record; `delayUntil`: when BullMQ is to look at it again. */
  | LoneEnd;
type LoneEnd = { kind: "ended"; delayUntil?: number };

/** How a job came out of a process of its own; `crashed`: it ended that too; `not-begun`: another process is to try it. */
export type LoneOutcome = LoneEnd | { kind: "crashed" } | { kind: "not-begun" };

/**
 * Runs a job in a process of its own, which is started as this one was; `signal` asks it to give the job back. `timeoutMs`: how
 * long the job may run. A process that neither ends in time nor stops is killed.
 */
export type RunAlone = (job: LoneJob & { timeoutMs: number }, signal: AbortSignal) => Promise<LoneOutcome>;

const ARGUMENT = "--lone-job";

/** The job that this process was started for; undefined in an ordinary worker. */
export function readLoneJob(args: readonly string[]): LoneJob | undefined {
  const [flag, queue, jobId] = args;
  return flag === ARGUMENT && queue !== undefined && jobId !== undefined ? { queue, jobId } : undefined;
}

/** How this worker runs jobs that are suspected to end their process. `script`: what this process was started with. */
export function makeRunAlone(
  script: string,
  logger: Platform["logger"],
  { settleMs = SETTLE_MS, stopTimeoutMs = STOP_TIMEOUT_MS } = {},
): RunAlone {
  return async ({ queue, jobId, timeoutMs }, signal) => {
    const child = fork(script, [ARGUMENT, queue, jobId], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    let limit: NodeJS.Timeout | undefined;
    const killAfter = (ms: number) => {
      clearTimeout(limit);
      limit = setTimeout(() => child.kill("SIGKILL"), ms);
    };
    killAfter(BEGIN_TIMEOUT_MS);
    const giveBack = () => {
      child.kill("SIGTERM");
      killAfter(stopTimeoutMs);
    };
    signal.addEventListener("abort", giveBack, { once: true });
    let hasBegun = false;
    let ended: LoneEnd | undefined;
    child.on("message", (report: LoneReport) => {
      if (report.kind === "begun") {
        hasBegun = true;
        if (!signal.aborted) killAfter(timeoutMs + settleMs);
      }
      if (report.kind === "ended") ended = report;
    });
    try {
      const [code, killedBy] = await once(child, "exit");
      if (ended) return ended;
      const isGivenBackByForce = signal.aborted && killedBy === "SIGKILL";
      if (!hasBegun || isGivenBackByForce) return { kind: "not-begun" }; // nothing is known against the job
      logger.error({ jobId, queue, code, killedBy }, "a job ended the process that it had for itself");
      return { kind: "crashed" };
    } finally {
      clearTimeout(limit);
      signal.removeEventListener("abort", giveBack);
    }
  };
}
