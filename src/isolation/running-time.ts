import { readFileSync } from "node:fs";

/** Interval of the checks of a running time, in ms. */
const TICK_MS = 50;
/** Most that one interval counts, in ms: a longer one means that the process was frozen, or busy with something else. */
const MAX_TICK_MS = 2 * TICK_MS;
/** Waiting for a processor prolongs a time by this factor at most. */
const MAX_PROLONGED = 5;

/**
 * Calls `onOver` once this process has run for `limitMs`. Time in which it was frozen does not count, because it could not
 * take the message that it waited for; nor does the time in which the other process could have run, but others had the
 * processors, which `waitedMs` reports as a growing sum. `stop` ends the watch and answers the time that counted, in ms.
 */
export function watchRunningTime(
  limitMs: number,
  onOver: () => void,
  waitedMs: () => number = () => 0,
): { stop(): number } {
  let countedMs = 0;
  let lastAt = performance.now();
  let waitedBefore: number | undefined;
  const count = () => {
    const now = performance.now();
    countedMs += Math.min(now - lastAt, MAX_TICK_MS);
    lastAt = now;
  };
  const waited = () => (waitedBefore === undefined ? 0 : Math.max(0, waitedMs() - waitedBefore));
  const timer = setInterval(() => {
    count();
    waitedBefore ??= waitedMs();
    if (countedMs < limitMs || (countedMs < limitMs * MAX_PROLONGED && countedMs - waited() < limitMs)) return;
    clearInterval(timer);
    onOver();
  }, TICK_MS);
  return {
    stop() {
      clearInterval(timer);
      count();
      return Math.max(0, countedMs - waited());
    },
  };
}

/** For how long a process was ready to run while others had the processors, in ms; 0 where the system does not say. */
export function waitedForProcessor(pid: number | undefined): number {
  if (pid === undefined || process.platform !== "linux") return 0;
  try {
    const [, nanoseconds] = readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ");
    return Number(nanoseconds ?? 0) / 1e6;
  } catch {
    return 0; // it has just ended, or the kernel does not count it
  }
}
