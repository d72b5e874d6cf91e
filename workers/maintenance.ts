import type { Platform } from "../src/platform.ts";

/**
 * Keeps the queues in line with the records, and documents, runs of agents, workflows and composite patterns with their jobs, while the
 * process runs. It is a timer and no queue of its own, since it must work when Redis has lost everything, its own schedule included; every worker
 * process may do it at once.
 */
export function keepReconciled({ jobs, rag, agents, workflows, composite, gateway, config, logger }: Platform): {
  stop(): Promise<void>;
} {
  let pass: Promise<void> = Promise.resolve();
  let isBusy = false;
  const reconcile = async () => {
    isBusy = true;
    try {
      const { requeued, expired } = await jobs.reconcile();
      if (requeued > 0) logger.info({ requeued, expired }, "jobs were enqueued again");
      await rag.sweep();
      await agents.sweep();
      await composite.sweep();
      await workflows.sweep();
      await gateway.batches.sweep();
    } catch (error) {
      logger.warn({ err: error }, "reconcile could not run; the next pass will");
    } finally {
      isBusy = false;
    }
  };
  const timer = setInterval(() => {
    if (!isBusy) pass = reconcile();
  }, config.jobs.reconcileEveryMs);
  return {
    async stop() {
      clearInterval(timer);
      await pass;
    },
  };
}
