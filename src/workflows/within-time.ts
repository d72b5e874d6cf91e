import { createContext, Script } from "node:vm";

const sandbox = createContext({});
const script = new Script("work()");

/** Whether `withinTime` has stopped what threw this. */
export function isOutOfTime(error: unknown): boolean {
  return Object(error).code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
}

/**
 * Calls `work`, which may not wait for anything, and stops it after `limitMs`: V8 ends it wherever it is, also within a regular
 * expression. https://nodejs.org/docs/latest-v24.x/api/vm.html (`timeout`)
 */
export function withinTime<T>(limitMs: number, work: () => T): T {
  sandbox.work = work;
  try {
    return script.runInContext(sandbox, { timeout: limitMs });
  } finally {
    sandbox.work = undefined;
  }
}
