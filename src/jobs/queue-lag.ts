import type { QueueLag } from "../observe/health.ts";
import type { JobStore } from "../store/job-store.ts";
import type { Heartbeats } from "./heartbeats.ts";
import type { QueueClient } from "./queue-client.ts";

export type LagDeps = {
  store: Pick<JobStore, "findOldestQueued">;
  queues: Pick<QueueClient, "instances">;
  heartbeats: Pick<Heartbeats, "list">;
};

/** Looks at every queue: its depth in Redis, its age in the store, which knows also what Redis has lost. */
export async function measureQueues({ store, queues, heartbeats }: LagDeps): Promise<QueueLag[]> {
  const now = new Date();
  const alive = (await heartbeats.list()).flatMap((worker) => worker.queues);
  return Promise.all(
    queues.instances().map(async (queue) => {
      const [counts, workers, oldest, isPaused] = await Promise.all([
        queue.getJobCounts("waiting", "prioritized", "active", "delayed", "failed"),
        queue.getWorkersCount(),
        store.findOldestQueued(queue.name, now),
        queue.isPaused(),
      ]);
      const { waiting = 0, prioritized = 0, active = 0, delayed = 0, failed = 0 } = counts;
      return {
        queue: queue.name,
        waiting: waiting + prioritized,
        active,
        delayed,
        failed,
        workers,
        placesPerWorker: mean(alive.flatMap((each) => (each.queue === queue.name ? [each.concurrency] : []))),
        oldestWaitingMs: oldest === null ? 0 : Math.max(0, now.getTime() - oldest.getTime()),
        isPaused,
      };
    }),
  );
}

const mean = (all: readonly number[]) => (all.length === 0 ? 0 : all.reduce((sum, one) => sum + one, 0) / all.length);
