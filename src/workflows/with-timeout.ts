import { createContext, Script } from "node:vm";
import { AppError } from "../lib/errors.ts";

const sandbox = createContext({});
const script = new Script("work()");

/** Whether `withOwnTimeout` has stopped what threw this. */
export function isOutOfTime(error: unknown): boolean {
  return Object(error).code === "ERR_SCRIPT_EXECUTION_TIMEOUT";
}

/** Below this share of the processor during its time, work was held up by others. */
const OWN_SHARE = 0.5;

/** Others had the processor during every attempt: that says nothing about the work. */
export class Starved extends AppError {
  constructor() {
    super("unavailable", "It could not be evaluated: the machine is too busy.", { retryable: true });
  }
}

/**
 * Calls `work`, which must be synchronous and free of side effects, and stops it after `limitMs` of wall-clock time: V8
 * interrupts loops and regular expressions, but no single built-in operation, as a search in a text. Work that others held up
 * is tried `attempts` times. https://nodejs.org/docs/latest-v24.x/api/vm.html (`timeout`) @throws Starved.
 */
export function withOwnTimeout<T>(limitMs: number, attempts: number, work: () => T): T {
  const before = process.threadCpuUsage();
  for (let left = attempts; left > 0; left -= 1) {
    sandbox.work = work;
    try {
      return script.runInContext(sandbox, { timeout: limitMs });
    } catch (error) {
      if (!isOutOfTime(error)) throw error;
      const { user, system } = process.threadCpuUsage(before);
      if ((user + system) / 1_000 > limitMs * OWN_SHARE) throw error;
    } finally {
      sandbox.work = undefined;
    }
  }
  throw new Starved();
}
