import { setTimeout as delay } from "node:timers/promises";

/** The longest time that a timer takes, in ms; a longer one would fire at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** The outcome of `work`, or the error that `late` makes when there is none after `ms`. The work itself is not stopped. */
export async function withTimeout<T>(work: Promise<T>, ms: number, late: () => Error): Promise<T> {
  const timer = new AbortController();
  const expiry = delay(Math.min(ms, MAX_TIMER_MS), undefined, { signal: timer.signal }).then(() => {
    throw late();
  });
  try {
    return await Promise.race([work, expiry]);
  } finally {
    timer.abort();
  }
}
