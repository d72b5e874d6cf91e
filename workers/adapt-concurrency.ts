import { performance } from "node:perf_hooks";
import type { Worker } from "bullmq";

/** Shares of the time that the event loop is busy: above the first there is too much at once, below the second room for more. */
const BUSY = 0.75;
const ROOMY = 0.45;
/** How often that is looked at, in ms. */
const LOOK_EVERY_MS = 500;

/** How many jobs to run at once, after a while in which the event loop was busy for this share of the time. Pure. */
export function nextConcurrency(now: { concurrency: number; most: number; busy: number }): number {
  if (now.busy > BUSY) return Math.max(1, now.concurrency - 1);
  if (now.busy < ROOMY) return Math.min(now.most, now.concurrency + 1);
  return now.concurrency;
}

/** Runs fewer jobs at once while the event loop is busy: those that compute would only slow each other down. */
export function adaptConcurrency(worker: Pick<Worker, "concurrency">): { stop(): void } {
  const most = worker.concurrency;
  let last = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const current = performance.eventLoopUtilization();
    const busy = performance.eventLoopUtilization(current, last).utilization;
    last = current;
    worker.concurrency = nextConcurrency({ concurrency: worker.concurrency, most, busy });
  }, LOOK_EVERY_MS);
  return { stop: () => clearInterval(timer) };
}
