import { hostname } from "node:os";
import { BEAT_EVERY_MS, type WorkerView } from "../src/jobs/heartbeats.ts";
import { keepDoing } from "../src/keep-doing.ts";
import type { Platform } from "../src/platform.ts";
import { version } from "../src/version.ts";

/** Reports a worker to the operator until the result is called. A report that fails is left out. */
export function reportWorker(
  { jobs, logger }: Pick<Platform, "jobs" | "logger">,
  { workerId, read }: { workerId: string; read: () => Pick<WorkerView, "runningJobs" | "queues"> },
) {
  const startedAt = new Date().toISOString();
  const fixed = { workerId, host: hostname(), pid: process.pid, version, node: process.version, startedAt };
  const beat = () => jobs.heartbeats.beat({ ...fixed, seenAt: new Date().toISOString(), ...read() });
  const onError = (error: unknown) => logger.debug({ err: error }, "the worker could not report itself");
  const first = beat().catch(onError);
  const beating = keepDoing(beat, { everyMs: BEAT_EVERY_MS, onError });
  return async (): Promise<void> => {
    await Promise.all([first, beating.stop()]);
    await jobs.heartbeats.stop(workerId).catch(onError);
  };
}
