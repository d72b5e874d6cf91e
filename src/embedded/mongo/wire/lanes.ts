/** Messages above this are large, in bytes: they bring chunks and pieces of sources, and take longest. */
const LARGE_BYTES = 64 << 10;

/**
 * Lets small messages run at once, and large ones one a turn of the event loop: a bulk load holds up another client by one
 * message at most, however many wait. Messages of one connection keep their order. What waits is bounded by the connections,
 * since a driver sends nothing on one before it has the answer.
 */
export function makeLanes() {
  const large: { connectionId: number; run: () => void }[] = [];
  const runNext = () => {
    large[0]?.run();
    large.shift(); // only now: until it has run, its connection's next message must wait
    if (large.length > 0) setImmediate(runNext);
  };
  return {
    admit(message: { connectionId: number; bytes: number }, run: () => void): void {
      const { connectionId, bytes } = message;
      if (bytes <= LARGE_BYTES && !large.some((waiting) => waiting.connectionId === connectionId)) {
        run();
        return;
      }
      large.push({ connectionId, run });
      if (large.length === 1) setImmediate(runNext);
    },
    /** Runs all that waits. */
    drain(): void {
      for (const { run } of large.splice(0)) run();
    },
  };
}

export type Lanes = ReturnType<typeof makeLanes>;
