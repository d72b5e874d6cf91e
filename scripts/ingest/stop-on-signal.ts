/** Exit code of a run that the user stopped. */
export const STOPPED = 130;

export type Stopping = { signal: AbortSignal; onStop(listener: () => void): void; release(): void };

/** The first Ctrl-C (or SIGTERM) lets submitted items be noted, the second ends at once. */
export function stopOnSignal(): Stopping {
  const controller = new AbortController();
  let tell = () => {};
  const stop = () => {
    if (controller.signal.aborted) process.exit(STOPPED);
    tell();
    controller.abort();
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  return {
    signal: controller.signal,
    onStop(listener) {
      tell = listener;
    },
    release() {
      process.off("SIGINT", stop);
      process.off("SIGTERM", stop);
    },
  };
}
