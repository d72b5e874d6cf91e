/** How many items are worked on at once, and since when the server wants us to wait. */
export type Pace = {
  /** Waits for a place and for the end of a pause; undefined when `signal` aborts first. The result gives the place back. */
  enter(signal: AbortSignal): Promise<(() => void) | undefined>;
  /** The server took something: a little more may go at once, up to the limit. */
  onAccepted(): void;
  /** The server has too much: half as many at once, and nothing for a while, in ms. */
  onRejected(waitMs: number): void;
  limit(): number;
};

/** Accepted items after which one more may go at once. */
const ACCEPTED_A_STEP = 8;
/** Rejections that come together are one: the limit is halved once in this time, in ms. */
const HALVED_EVERY_MS = 1_000;

/** Additive increase, multiplicative decrease, as TCP finds its rate; starts at `max`. */
export function makePace(max: number): Pace {
  let limit = max;
  let inside = 0;
  let accepted = 0;
  let pausedUntil = 0;
  let halvedAt = Number.NEGATIVE_INFINITY;
  let waiting: (() => void)[] = [];
  const wake = () => {
    for (const look of waiting.splice(0)) look();
  };
  const leave = () => {
    inside -= 1;
    wake();
  };
  const turn = (signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      const pauseMs = pausedUntil - performance.now();
      const timer = pauseMs > 0 ? setTimeout(done, pauseMs) : undefined;
      function done() {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        waiting = waiting.filter((one) => one !== done);
        resolve();
      }
      waiting.push(done);
      signal.addEventListener("abort", done, { once: true });
    });
  return {
    async enter(signal) {
      while (!signal.aborted) {
        if (inside < limit && performance.now() >= pausedUntil) {
          inside += 1;
          return leave;
        }
        await turn(signal);
      }
      return undefined;
    },
    onAccepted() {
      accepted += 1;
      if (accepted % ACCEPTED_A_STEP !== 0 || limit >= max) return;
      limit += 1;
      wake();
    },
    onRejected(waitMs) {
      const now = performance.now();
      pausedUntil = Math.max(pausedUntil, now + waitMs);
      if (now - halvedAt < HALVED_EVERY_MS) return;
      halvedAt = now;
      limit = Math.max(1, Math.floor(limit / 2));
    },
    limit: () => limit,
  };
}
