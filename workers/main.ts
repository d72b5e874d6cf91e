import { loadConfig } from "../src/config.ts";
import { serveOperations } from "../src/metrics/serve-operations.ts";
import { openPlatform } from "../src/platform.ts";
import { runProcess } from "../src/run-process.ts";
import { startTracing } from "../src/start-tracing.ts";
import { type HandlerEntry, handlers } from "./handlers.ts";
import { startWorkers } from "./start-workers.ts";

/** Opens the platform and takes jobs: a worker as it runs in a process of its own. `extra` adds queues to the product's. */
export async function openWorker(extra: readonly HandlerEntry[] = []) {
  const config = loadConfig();
  const platform = await openPlatform(config, { name: "worker", queues: extra.map((entry) => entry.queue) });
  const tracing = await startTracing({ config: config.tracing, process: "worker", logger: platform.logger });
  platform.metrics.watchProcess();
  const operations = await serveOperations(platform, { isWholeFleet: false });
  const { queues, concurrencyFactor } = config.workers;
  const workers = await startWorkers(platform, {
    handlers: [...handlers, ...extra],
    concurrencyFactor,
    shutdownGraceMs: config.shutdownGraceMs,
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

if (import.meta.main) await runProcess(() => openWorker());
