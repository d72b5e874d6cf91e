import { setTimeout as delay } from "node:timers/promises";
import { sweepWorks } from "../src/jobs/work.ts";
import type { Logger } from "../src/logger.ts";
import type { Platform } from "../src/platform.ts";

/** How often callbacks that are due are looked for, in ms, at most; less often where reconcile is. */
const CALLBACKS_EVERY_MS = 1_000;

type Loop = { stop(): Promise<void> };

/**
 * Keeps the queues in line with the records, and documents and runs (of agents, workflows, composite patterns) with their jobs,
 * and sends callbacks for jobs that have ended, while the process runs. These are timers instead of a queue, since they must
 * work when Redis has lost everything, its own schedule included; every worker process may do it at once.
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
    // A loop of its own, so that slow receivers do not delay reconcile.
    keepDoing(callbacks.sweep, { everyMs: Math.min(reconcileEveryMs, CALLBACKS_EVERY_MS), what: "callbacks", logger }),
  ];
  return { stop: async () => void (await Promise.all(loops.map((loop) => loop.stop()))) };
}

/** Does some work repeatedly, with a pause in between. */
function keepDoing(work: () => Promise<unknown>, options: { everyMs: number; what: string; logger: Logger }): Loop {
  const { everyMs, what, logger } = options;
  const controller = new AbortController();
  const { signal } = controller;
  const loop = async () => {
    // The pause is cut short, and then false, when the loop is to stop.
    while (await delay(everyMs, true, { signal }).catch(() => false)) {
      try {
        await work();
      } catch (error) {
        logger.warn({ err: error, what }, "a sweep could not run; the next pass will");
      }
    }
  };
  const ended = loop();
  return {
    stop() {
      controller.abort();
      return ended;
    },
  };
}
