import { setImmediate } from "node:timers/promises";

/** How long work holds up everything else of this process at a time, in ms. */
const SLICE_MS = 10;

/** Does work that takes long, of which each `yield` is a place where others may have their turn. @throws the signal's reason. */
export async function inSlices<T>(work: Iterator<void, T>, signal?: AbortSignal): Promise<T> {
  let until = performance.now() + SLICE_MS;
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    if (performance.now() < until) continue;
    await setImmediate();
    signal?.throwIfAborted();
    until = performance.now() + SLICE_MS;
  }
}
