import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { DelayedError, UnrecoverableError, Worker } from "bullmq";
import { makePace } from "../src/isolation/pace.ts";
import { BEAT_EVERY_MS, type WorkerView } from "../src/jobs/heartbeats.ts";
import { skipVersionCheck } from "../src/jobs/queue-client.ts";
import { queues as productQueues, type QueueDefinition } from "../src/jobs/queues.ts";
import type { Work } from "../src/jobs/work.ts";
import { keepDoing } from "../src/lib/keep-doing.ts";
import { version } from "../src/lib/version.ts";
import type { Platform } from "../src/platform.ts";
import type { ShellDeps } from "./hold-lease.ts";
import { keepReconciled } from "./maintenance.ts";
import { makeRelief, type Process } from "./relief.ts";
import type { LoneJob, LoneReport, RunAlone } from "./run-alone.ts";
import { makeProcessor } from "./run-job.ts";

/** How often BullMQ looks for jobs whose worker has died, in parts of the lease. */
const STALL_CHECKS_A_LEASE = 3;

/** How long an idle worker waits for BullMQ's wake-up before it looks itself, in seconds: a frozen worker may have had it. */
const POLL_QUEUE_S = 2;

/** How long a worker waits after Redis was lost before it asks again, in ms. */
const RETRY_REDIS_MS = 1_000;

type WorkersOptions = {
  /** Works besides the product's own, as a bench's no-op. */
  extra?: readonly Work[];
  /** Names of the queues to take jobs from; all when absent. */
  queues?: readonly string[];
  concurrencyFactor: number;
  shutdownGraceMs: number;
  /** How a job runs that is suspected to end its process; without it, such a job runs as any other. */
  runAlone?: RunAlone;
};

/** How often jobs are stopped that begin after the grace, in ms. */
const STOP_EVERY_MS = 100;

/** Takes jobs from the queues, until closed. @throws TypeError when no work has jobs on one of these queues. */
export async function startWorkers(platform: Platform, options: WorkersOptions) {
  const { runAlone } = options;
  const name = randomUUID().slice(0, 8);
  const deps = { ...makeShell(platform, { name, extra: options.extra }), ...(runAlone ? { runAlone } : {}) };
  const queues = chooseQueues(deps.works, options.queues);
  const started = queues.map((queue) => ({ queue, ...startWorker(deps, queue, options.concurrencyFactor) }));
  const workers = started.map(({ worker }) => worker);
  const stopCancels = await takeCancels(deps);
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  const reconciling = keepReconciled(platform);
  const stopReports = reportWorker(platform, {
    workerId: deps.workerId,
    read: () => ({
      runningJobs: deps.running.size,
      queues: started.map(({ queue, worker }) => ({ queue: queue.name, concurrency: worker.concurrency })),
    }),
  });
  return {
    /** Takes no more jobs, lets running ones end within the grace, then stops the rest and gives them back. */
    async close(): Promise<void> {
      stopCancels();
      deps.closing.abort();
      let timer = setTimeout(stopRunning, options.shutdownGraceMs);
      function stopRunning() {
        for (const stop of deps.running.values()) stop("shutdown");
        timer = setTimeout(stopRunning, STOP_EVERY_MS); // one that was claimed just before may begin only now
      }
      const closing = started.flatMap(({ worker, relief }) => [worker.close(), relief.close()]);
      // A sweep may take long: meanwhile no job is taken, and those that run have no more than the grace.
      await Promise.all([reconciling.stop(), ...closing]);
      clearTimeout(timer);
      await stopReports();
    },
  };
}

/** What the queues of a process share. `name` distinguishes this worker from others of its host and process. */
function makeShell(
  platform: Platform,
  { name, extra = [] }: { name: string; extra?: readonly Work[] | undefined },
): ShellDeps {
  return {
    platform,
    works: [...platform.works, ...extra],
    workerId: `${hostname()}:${process.pid}:${name}`,
    running: new Map(),
    leaseMs: platform.config.jobs.leaseMs,
    pace: makePace(),
    closing: new AbortController(),
    alone: new Set(),
  };
}

/** Stops jobs of this process as soon as they are cancelled; the result ends that. */
function takeCancels({ platform, running }: ShellDeps): Promise<() => void> {
  return platform.jobs.notifications.onCancel((jobId) => running.get(jobId)?.("cancelled"));
}

/** Runs one job, alone, for another worker: reports to that worker, and ends with its process. */
export async function runLoneJob(
  platform: Platform,
  extra: readonly Work[],
  { queue: name, jobId }: LoneJob,
): Promise<void> {
  const shell = makeShell(platform, { name: "alone", extra });
  const [queue] = chooseQueues(shell.works, [name]);
  const record = await platform.store.jobs.findById(jobId);
  if (!queue || !record) return;
  const report = (message: LoneReport) => process.send?.(message, () => undefined); // a worker that is gone needs no report
  const deps = { ...shell, onClaimed: () => void report({ kind: "begun" }) };
  process.on("SIGTERM", () => deps.running.get(jobId)?.("shutdown"));
  process.on("SIGINT", () => undefined); // Ctrl-C reaches the whole group; the worker says when to stop
  const stopCancels = await takeCancels(deps);
  let delayUntil: number | undefined;
  const job = {
    id: jobId,
    data: record.payload,
    moveToDelayed: async (at: number) => {
      delayUntil = at;
    },
  };
  try {
    await makeProcessor(deps, queue)(job, undefined);
  } catch (error) {
    if (!(error instanceof DelayedError || error instanceof UnrecoverableError)) throw error;
  } finally {
    stopCancels();
  }
  report({ kind: "ended", ...(delayUntil === undefined ? {} : { delayUntil }) });
}

function startWorker(deps: ShellDeps, queue: QueueDefinition, factor: number) {
  const { redis, logger, queues } = deps.platform;
  const onError = (error: unknown) => logger.warn({ queue: queue.name, err: error }, "worker error");
  const makeWorker = (process: Process, autorun: boolean) =>
    new Worker(queue.name, process, {
      connection: redis.consumer(),
      prefix: redis.prefix,
      autorun,
      concurrency: Math.max(1, Math.round(queue.concurrency * factor)),
      lockDuration: deps.leaseMs,
      stalledInterval: Math.ceil(deps.leaseMs / STALL_CHECKS_A_LEASE),
      skipVersionCheck,
      drainDelay: POLL_QUEUE_S,
      runRetryDelay: RETRY_REDIS_MS,
      maxStalledCount: Number.MAX_SAFE_INTEGER, // the record decides when a job has been lost too often
    }).on("error", (error) => onError({ message: error.message }));
  const relief = makeRelief({
    queue: queues.find(queue.name),
    process: makeProcessor(deps, queue),
    makeWorker: (process) => makeWorker(process, false),
    onError,
  });
  const worker = makeWorker(relief.process, true);
  relief.watch(worker);
  return { worker, relief };
}

function chooseQueues(works: readonly Work[], names: readonly string[] | undefined): QueueDefinition[] {
  const known = new Set([...Object.values(productQueues), ...works.map(({ queue }) => queue)]);
  const chosen = names ?? [...known].map(({ name }) => name);
  return chosen.map((name) => {
    const work = works.find(({ queue }) => queue.name === name);
    if (!work) throw new TypeError(`No work has jobs on the queue ${name}`);
    return work.queue;
  });
}

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
