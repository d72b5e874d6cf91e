import { loadConfig } from "../src/config/config.ts";
import type { Work } from "../src/jobs/work.ts";
import { AppError } from "../src/lib/errors.ts";
import { serveAdmin } from "../src/observe/metrics/admin-server.ts";
import { startTracing } from "../src/observe/start-tracing.ts";
import { openPlatform } from "../src/platform.ts";
import { runProcess } from "../src/run-process.ts";
import { isStoreFailure } from "../src/store/store-errors.ts";
import { makeRunAlone, readLoneJob } from "./run-alone.ts";
import { runLoneJob, startWorkers } from "./start-workers.ts";

/** Opens the platform and takes jobs: a worker as it runs in a process of its own. `extra` adds works to the product's. */
async function openWorker(extra: readonly Work[] = []) {
  const config = loadConfig();
  const platform = await openPlatform(config, { name: "worker", queues: extra.map(({ queue }) => queue) });
  const tracing = await startTracing({ config: config.tracing, process: "worker", logger: platform.logger });
  platform.metrics.watchProcess();
  const operations = await serveAdmin(platform, { isWholeFleet: false });
  const { queues, concurrencyFactor } = config.workers;
  const workers = await startWorkers(platform, {
    extra,
    concurrencyFactor,
    shutdownGraceMs: config.shutdownGraceMs,
    runAlone: makeRunAlone(process.argv[1] ?? "", platform.logger),
    ...(queues ? { queues } : {}),
  });
  platform.logger.info({ queues: queues ?? "all" }, "taking jobs");
  const close = async () => {
    await workers.close();
    await operations.close();
    await platform.close();
    await tracing.close();
  };
  return { platform, ready: { metricsUrl: operations.url }, graceMs: config.shutdownGraceMs, close };
}

/** Runs this process as a worker, or for the one job that another worker has started it for. */
export async function runWorker(extra: readonly Work[] = []): Promise<void> {
  const lone = readLoneJob(process.argv.slice(2));
  if (!lone) return runProcess(() => openWorker(extra));
  process.on("disconnect", () => process.exit(1)); // its worker is gone: the lease ends, and another one takes the job
  try {
    const platform = await openPlatform(loadConfig(), { name: "worker", queues: extra.map(({ queue }) => queue) });
    await runLoneJob(platform, extra, lone);
    await platform.close();
  } catch (error) {
    // Without its store a process does not come to begin its job, or has ended it: the worker knows which.
    if (!isStoreFailure(error) && !(error instanceof AppError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
  process.exit(0);
}

if (import.meta.main) await runWorker();
