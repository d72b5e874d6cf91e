import { setTimeout as delay } from "node:timers/promises";

type Options = {
  everyMs: number;
  /** The pause doubles with each failure in a row, up to this; without it, it stays the same. */
  atMostMs?: number;
  /** Called with a failure, and with the pause that follows it, in ms. */
  onError(error: unknown, waitMs: number): void;
};

/**
 * Does some work repeatedly, with a pause before each time. It keeps no process alive. The work's signal aborts when the loop
 * is to stop.
 */
export function keepDoing(
  work: (signal: AbortSignal) => Promise<unknown>,
  { everyMs, atMostMs = everyMs, onError }: Options,
) {
  const controller = new AbortController();
  const { signal } = controller;
  const loop = async () => {
    let waitMs = everyMs;
    // The pause is cut short, and then false, when the loop is to stop.
    while ((await delay(waitMs, true, { signal, ref: false }).catch(() => false)) && !signal.aborted) {
      try {
        await work(signal);
        waitMs = everyMs;
      } catch (error) {
        waitMs = Math.min(waitMs * 2, atMostMs);
        onError(error, waitMs);
      }
    }
  };
  const ended = loop();
  return {
    /** Resolves when work that is under way has ended. */
    stop(): Promise<void> {
      controller.abort();
      return ended;
    },
  };
}
