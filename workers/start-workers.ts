import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { Worker } from "bullmq";
import type { Platform } from "../src/platform.ts";
import { adaptConcurrency } from "./adapt-concurrency.ts";
import type { HandlerEntry } from "./handlers.ts";
import type { RunningJobs } from "./hold-lease.ts";
import { keepReconciled } from "./maintenance.ts";
import { makeProcessor, type ShellDeps } from "./run-job.ts";

/** How often BullMQ looks for jobs whose worker has died, in parts of the lease. */
const STALL_CHECKS_A_LEASE = 3;

/** How long an idle worker waits for BullMQ's wake-up before it looks itself, in seconds: a frozen worker may have had it. */
const POLL_QUEUE_S = 2;

export type WorkersOptions = {
  handlers: readonly HandlerEntry[];
  /** Names of the queues to take jobs from; all when absent. */
  queues?: readonly string[];
  concurrencyFactor: number;
  shutdownGraceMs: number;
};

export type RunningWorkers = {
  /** Takes no more jobs, lets running ones end within the grace, then stops the rest and gives them back. */
  close(): Promise<void>;
};

/**
 * Takes jobs from the queues, until closed.
 * @throws TypeError when a queue that is asked for has no handler, or two.
 */
export async function startWorkers(platform: Platform, options: WorkersOptions): Promise<RunningWorkers> {
  const entries = chooseEntries(options);
  const leaseMs = platform.config.jobs.leaseMs;
  const running: RunningJobs = new Map();
  const workerId = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`;
  const deps: ShellDeps = { platform, workerId, running, leaseMs };
  const workers = entries.map((entry) => startWorker(deps, entry, options.concurrencyFactor));
  const adapted = entries.flatMap((entry, at) => {
    const worker = workers[at];
    return worker && entry.queue.isComputing ? [adaptConcurrency(worker)] : [];
  });
  const stopCancels = await platform.jobs.announcements.onCancel((jobId) => running.get(jobId)?.("cancelled"));
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  const reconciling = keepReconciled(platform);
  return {
    async close() {
      stopCancels();
      for (const one of adapted) one.stop();
      await reconciling.stop();
      const grace = setTimeout(() => {
        for (const stop of running.values()) stop("shutdown");
      }, options.shutdownGraceMs);
      await Promise.all(workers.map((worker) => worker.close()));
      clearTimeout(grace);
    },
  };
}

function startWorker(deps: ShellDeps, { queue, handler }: HandlerEntry, factor: number): Worker {
  const { redis, logger } = deps.platform;
  const worker = new Worker(queue.name, makeProcessor(deps, queue, handler), {
    connection: redis.consumer(),
    prefix: redis.prefix,
    concurrency: Math.max(1, Math.round(queue.concurrency * factor)),
    lockDuration: deps.leaseMs,
    stalledInterval: Math.ceil(deps.leaseMs / STALL_CHECKS_A_LEASE),
    drainDelay: POLL_QUEUE_S,
    maxStalledCount: Number.MAX_SAFE_INTEGER, // the record decides when a job has been lost too often
  });
  worker.on("error", (error) => logger.warn({ queue: queue.name, err: { message: error.message } }, "worker error"));
  return worker;
}

function chooseEntries({ handlers, queues }: WorkersOptions): HandlerEntry[] {
  const names = queues ?? handlers.map((entry) => entry.queue.name);
  return names.map((name) => {
    const [entry, second] = handlers.filter(({ queue }) => queue.name === name);
    if (!entry || second) throw new TypeError(`The queue ${name} has ${entry ? "two handlers" : "no handler"}`);
    return entry;
  });
}
