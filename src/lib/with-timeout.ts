import { setTimeout as delay } from "node:timers/promises";

/** The outcome of `work`, or the error that `late` makes when there is none after `ms`. The work itself is not stopped. */
export async function withTimeout<T>(work: Promise<T>, ms: number, late: () => Error): Promise<T> {
  const timer = new AbortController();
  const expiry = delay(ms, undefined, { signal: timer.signal }).then(() => {
    throw late();
  });
  try {
    return await Promise.race([work, expiry]);
  } finally {
    timer.abort();
  }
}
