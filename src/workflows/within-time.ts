import { createContext, Script } from "node:vm";

const sandbox = createContext({});
const script = new Script("work()");

/** Whether `withinTime` has stopped what threw this. */
export function isOutOfTime(error: unknown): boolean {
  return Object(error).code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
}

/**
 * Calls `work`, which must be synchronous and free of side effects, and stops it after `limitMs` of wall-clock time: V8
 * interrupts loops and regular expressions, but no single built-in operation, as a search in a text.
 * https://nodejs.org/docs/latest-v24.x/api/vm.html (`timeout`)
 */
export function withinTime<T>(limitMs: number, work: () => T): T {
  sandbox.work = work;
  try {
    return script.runInContext(sandbox, { timeout: limitMs });
  } finally {
    sandbox.work = undefined;
  }
}
