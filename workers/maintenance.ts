import { sweepWorks } from "../src/jobs/work.ts";
import type { Logger } from "../src/logger.ts";
import type { Platform } from "../src/platform.ts";

/** How often callbacks that are due are looked for, in ms, at most; less often where reconcile is. */
const CALLBACKS_EVERY_MS = 1_000;

type Loop = { stop(): Promise<void> };

/**
 * Keeps the queues in line with the records, and documents and runs (of agents, workflows, composite patterns) with their jobs,
 * and tells callbacks of jobs that have ended, while the process runs. They are timers and no queue of their own, since they
 * must work when Redis has lost everything, its own schedule included; every worker process may do it at once.
 */
export function keepReconciled(platform: Platform): Loop {
  const { jobs, works, workflows, gateway, callbacks, config, logger } = platform;
  const reconcile = async () => {
    const { requeued, expired } = await jobs.reconcile();
    if (requeued > 0) logger.info({ requeued, expired }, "jobs were enqueued again");
    await workflows.sweepApprovals();
    await gateway.batches.sweep();
    await sweepWorks(jobs, works);
  };
  const { reconcileEveryMs } = config.jobs;
  const loops = [
    keepDoing(reconcile, { everyMs: reconcileEveryMs, what: "reconcile", logger }),
    // By itself: receivers may be slow, and reconcile must not wait for them.
    keepDoing(callbacks.sweep, { everyMs: Math.min(reconcileEveryMs, CALLBACKS_EVERY_MS), what: "callbacks", logger }),
  ];
  return { stop: async () => void (await Promise.all(loops.map((loop) => loop.stop()))) };
}

/** Does some work again and again, never twice at once. */
function keepDoing(work: () => Promise<unknown>, options: { everyMs: number; what: string; logger: Logger }): Loop {
  const { everyMs, what, logger } = options;
  let pass: Promise<void> = Promise.resolve();
  let isBusy = false;
  const run = async () => {
    isBusy = true;
    try {
      await work();
    } catch (error) {
      logger.warn({ err: error, what }, "a sweep could not run; the next pass will");
    } finally {
      isBusy = false;
    }
  };
  const timer = setInterval(() => {
    if (!isBusy) pass = run();
  }, everyMs);
  return {
    async stop() {
      clearInterval(timer);
      await pass;
    },
  };
}
