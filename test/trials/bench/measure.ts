/** The value below which `share` of the samples lie (nearest rank). */
export function percentile(samples: readonly number[], share: number): number {
  if (samples.length === 0) return Number.NaN;
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN;
}

export function median(samples: readonly number[]): number {
  return percentile(samples, 0.5);
}

/** Runs `call` `total` times with at most `concurrency` at once; the wall time in ms. */
export async function runConcurrently(
  total: number,
  concurrency: number,
  call: (index: number) => Promise<unknown>,
): Promise<number> {
  const started = performance.now();
  let next = 0;
  const lane = async () => {
    for (let index = next++; index < total; index = next++) await call(index);
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, total) }, lane));
  return performance.now() - started;
}

/**
 * Open loop: calls begin at Poisson times of `perSecond` for `seconds`, whether or not earlier ones have ended, so that a
 * slow server cannot slow its own load down. `call` returns the latency to record, in ms.
 */
export async function runOpenLoop(options: {
  perSecond: number;
  seconds: number;
  seed: number;
  call: () => Promise<number>;
}): Promise<number[]> {
  const random = seededRandom(options.seed);
  const latencies: number[] = [];
  const running: Promise<void>[] = [];
  const started = performance.now();
  let due = 0;
  while (due < options.seconds * 1_000) {
    const wait = started + due - performance.now();
    if (wait > 1) await new Promise((resolve) => setTimeout(resolve, wait));
    running.push(options.call().then((ms) => void latencies.push(ms)));
    due += (-Math.log(1 - random()) / options.perSecond) * 1_000;
  }
  await Promise.all(running);
  return latencies;
}

/** A small deterministic generator (mulberry32), so that two runs of a bench see the same load. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
