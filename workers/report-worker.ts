import { hostname } from "node:os";
import { BEAT_EVERY_MS, type WorkerView } from "../src/jobs/heartbeats.ts";
import { keepDoing } from "../src/lib/keep-doing.ts";
import { version } from "../src/lib/version.ts";
import type { Platform } from "../src/platform.ts";

/**
 * Reports a worker to the operator until the result is called, and says in the log which queues somebody has paused. A report
 * that fails is left out.
 */
export function reportWorker(
  { jobs, queues, logger }: Pick<Platform, "jobs" | "queues" | "logger">,
  { workerId, read }: { workerId: string; read: () => Pick<WorkerView, "runningJobs" | "queues"> },
) {
  const startedAt = new Date().toISOString();
  const fixed = { workerId, host: hostname(), pid: process.pid, version, node: process.version, startedAt };
  const watchPauses = makePauseWatch({ queues, logger });
  const beat = async () => {
    await jobs.heartbeats.beat({ ...fixed, seenAt: new Date().toISOString(), ...read() });
    await watchPauses();
  };
  const onError = (error: unknown) => logger.debug({ err: error }, "the worker could not report itself");
  const first = beat().catch(onError);
  const beating = keepDoing(beat, { everyMs: BEAT_EVERY_MS, onError });
  return async (): Promise<void> => {
    await Promise.all([first, beating.stop()]);
    await jobs.heartbeats.stop(workerId).catch(onError);
  };
}

/** Logs a change of the queues that are paused: a queue is paused for all workers and tenants, and stays so. */
function makePauseWatch({ queues, logger }: Pick<Platform, "queues" | "logger">) {
  let known = "";
  return async (): Promise<void> => {
    const states = await Promise.all(
      queues.instances().map(async (queue) => ({ name: queue.name, isPaused: await queue.isPaused() })),
    );
    const paused = states.filter(({ isPaused }) => isPaused).map(({ name }) => name);
    const now = paused.join(", ");
    if (now === known) return;
    known = now;
    if (paused.length > 0) logger.warn({ queues: paused }, "somebody has paused queues: nobody takes their jobs");
    else logger.info("no queue is paused any more");
  };
}
