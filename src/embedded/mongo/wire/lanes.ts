/** Messages above this are large, in bytes: they bring chunks and pieces of sources, and take longest. */
const LARGE_BYTES = 64 << 10;
/** Longest time in which large messages share one commit, in ms: a commit costs as much as a small one of them. */
const SHARED_MS = 30;

/**
 * Lets small messages run at once, and large ones one a turn of the event loop: a bulk load holds up another client by one
 * message at most, however many wait. Messages of one connection keep their order. What waits is bounded by the connections,
 * since a driver sends nothing on one before it has the answer. `flush` commits what large messages wrote; a small message
 * that comes between them does so on its own.
 */
export function makeLanes(flush: () => void) {
  const large: { connectionId: number; run: () => void }[] = [];
  let begunAt = Number.NaN;
  const runNext = () => {
    large[0]?.run();
    large.shift(); // only now: until it has run, its connection's next message must wait
    if (large.length === 0 || performance.now() - begunAt > SHARED_MS) {
      flush();
      begunAt = performance.now();
    }
    if (large.length > 0) setImmediate(runNext);
  };
  return {
    /** `run` is called with whether its writes are committed by `flush`. */
    admit(message: { connectionId: number; bytes: number }, run: (isFlushed: boolean) => void): void {
      const { connectionId, bytes } = message;
      if (bytes <= LARGE_BYTES && !large.some((waiting) => waiting.connectionId === connectionId)) {
        run(false);
        return;
      }
      large.push({ connectionId, run: () => run(true) });
      if (large.length > 1) return;
      begunAt = performance.now();
      setImmediate(runNext);
    },
    /** Runs all that waits. */
    drain(): void {
      for (const { run } of large.splice(0)) run();
      flush();
    },
  };
}

export type Lanes = ReturnType<typeof makeLanes>;
