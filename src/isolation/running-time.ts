/** Interval of the checks, in ms. */
const TICK_MS = 50;
/** Most that one interval counts, in ms: a longer one means that the process was frozen, or busy with something else. */
const MAX_TICK_MS = 2 * TICK_MS;

/**
 * Calls `onOver` once this process has run for `limitMs`. Time in which it was frozen does not count, because it could not
 * take the message that it waited for. `stop` ends the watch and answers the time that counted, in ms.
 */
export function watchRunningTime(limitMs: number, onOver: () => void): { stop(): number } {
  let countedMs = 0;
  let lastAt = performance.now();
  const count = () => {
    const now = performance.now();
    countedMs += Math.min(now - lastAt, MAX_TICK_MS);
    lastAt = now;
  };
  const timer = setInterval(() => {
    count();
    if (countedMs < limitMs) return;
    clearInterval(timer);
    onOver();
  }, TICK_MS);
  return {
    stop() {
      clearInterval(timer);
      count();
      return countedMs;
    },
  };
}
