import { createContext, Script } from "node:vm";

/** Tries of a work that was given too little of the processor; all of them may take so many times its limit. */
const MAX_TRIES = 10;
/** Share of the limit that a work must have had of the processor to be the cause of its being late. */
const OWN_SHARE = 0.8;

const sandbox = createContext({});
const script = new Script("work()");

/** Whether `withinTime` has stopped what threw this. */
export function isOutOfTime(error: unknown): boolean {
  return Object(error).code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
}

/**
 * Calls `work`, which may not wait for anything or change anything, and stops it after `limitMs`: V8 ends it wherever it is, also
 * within a regular expression. V8's clock goes on while others have the processor: what was late for that alone is done again.
 * https://nodejs.org/docs/latest-v24.x/api/vm.html (`timeout`)
 */
export function withinTime<T>(limitMs: number, work: () => T): T {
  for (let tries = 1; ; tries += 1) {
    const before = process.threadCpuUsage();
    sandbox.work = work;
    try {
      return script.runInContext(sandbox, { timeout: limitMs });
    } catch (error) {
      const { user, system } = process.threadCpuUsage(before);
      const wasItsOwn = (user + system) / 1_000 > limitMs * OWN_SHARE;
      if (!isOutOfTime(error) || wasItsOwn || tries === MAX_TRIES) throw error;
    } finally {
      sandbox.work = undefined;
    }
  }
}
