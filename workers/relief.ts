import { setTimeout as delay } from "node:timers/promises";
import { DelayedError, type Job, type Queue, type Worker } from "bullmq";
import { keepDoing } from "../src/lib/keep-doing.ts";

/** A job that has run this long is slow, in ms. */
const SLOW_MS = 300;
/** How often the slots are checked, in ms; and how often the queue, while one tenant's slow jobs take them. */
const CHECK_EVERY_MS = 100;
const LOOK_EVERY_MS = 20;
/** Waiting jobs that are looked at for another tenant's. */
const HEADS = 20;
/** How long a job is put back whose tenant has its share already, in ms. */
const PUT_BACK_MS = 1_000;

export type Process = (job: Job, token: string | undefined, signal?: AbortSignal) => Promise<unknown>;
type Running = { tenantId: string; startedAt: number };

/**
 * Keeps one tenant's slow jobs from blocking the others. While all slots of a worker are taken, and more than half of them by
 * slow jobs of one tenant, a second worker with as many slots runs the jobs of the other tenants. It runs only while such
 * jobs wait: in all other cases the cost is a look at a few numbers.
 */
export function makeRelief(options: {
  queue: Pick<Queue, "getPrioritized">;
  process: Process;
  /** Makes a worker on the queue that does not run yet. */
  makeWorker(process: Process): Worker;
  onError(error: unknown): void;
}) {
  const running = new Map<Job, Running>();
  let primary: Pick<Worker, "concurrency"> = { concurrency: 1 };
  let second: Worker | undefined;

  const track =
    (process: Process): Process =>
    async (job, token, signal) => {
      running.set(job, { tenantId: tenantOf(job), startedAt: performance.now() });
      try {
        return await process(job, token, signal);
      } finally {
        running.delete(job);
      }
    };
  const processOthers: Process = async (job, token, signal) => {
    if (!blockersOf([...running.values()], primary.concurrency).has(tenantOf(job)))
      return track(options.process)(job, token, signal);
    await job.moveToDelayed(Date.now() + PUT_BACK_MS, token);
    throw new DelayedError();
  };
  const takeOthers = async () => {
    if (second?.isRunning() && !second.isPaused()) return;
    if (second) return second.resume();
    second = options.makeWorker(processOthers);
    void second.run().catch(options.onError);
  };
  const check = async (signal: AbortSignal) => {
    for (; !signal.aborted; await delay(LOOK_EVERY_MS, undefined, { ref: false })) {
      const blockers = blockersOf([...running.values()], primary.concurrency);
      const heads = blockers.size === 0 ? [] : await options.queue.getPrioritized(0, HEADS - 1);
      if (heads.some((job) => !blockers.has(tenantOf(job)))) await takeOthers();
      else await second?.pause(true);
      if (blockers.size === 0) return;
    }
  };
  const checking = keepDoing(check, { everyMs: CHECK_EVERY_MS, onError: options.onError });

  return {
    process: track(options.process),
    /** Names the worker whose slots are watched. */
    watch(worker: Pick<Worker, "concurrency">) {
      primary = worker;
    },
    async close() {
      await checking.stop();
      await second?.close();
    },
  };
}

/** The tenants whose slow jobs take more than half of the slots, if all slots are taken. Pure but for the clock. */
function blockersOf(running: readonly Running[], slots: number): ReadonlySet<string> {
  if (running.length < slots) return new Set();
  const slow = running.filter(({ startedAt }) => performance.now() - startedAt > SLOW_MS);
  const counts = Map.groupBy(slow, ({ tenantId }) => tenantId);
  return new Set([...counts].filter(([, jobs]) => jobs.length * 2 > slots).map(([tenantId]) => tenantId));
}

function tenantOf(job: Job): string {
  const { tenantId } = job.data as { tenantId?: string }; // an invalid payload is reported by the processor
  return tenantId ?? "";
}
