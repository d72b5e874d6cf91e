import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { loadConfig } from "../src/config.ts";
import { defined } from "../src/defined.ts";
import type { QueueDefinition } from "../src/jobs/queues.ts";
import { listen } from "../src/listen.ts";
import { serveOperations } from "../src/metrics/serve-operations.ts";
import { openPlatform, type Platform } from "../src/platform.ts";
import { runProcess } from "../src/run-process.ts";
import { startTracing } from "../src/start-tracing.ts";
import { allRoutes } from "./all-routes.ts";
import { createApp } from "./app.ts";
import { configureServer } from "./configure-server.ts";
import type { AnyRoute } from "./route.ts";

export type ApiServer = {
  url: string;
  /** Stops accepting requests, lets running ones end within the grace period, then cuts the rest. */
  close(): Promise<void>;
};

/**
 * Serves the platform over HTTP at the configured address.
 * @throws ConfigError when the address is in use, or not this machine's.
 */
export async function serveApi(platform: Platform, routes: readonly AnyRoute[] = allRoutes): Promise<ApiServer> {
  const { host, port } = platform.config.http;
  const server = createServer(createApp(platform, { routes }).callback());
  configureServer(server);
  const url = await listen(server, { host, port, setting: "HOST and PORT" });
  return { url, close: () => drain(server, platform.config.shutdownGraceMs) };
}

async function drain(server: Server, graceMs: number): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(cut);
}

/** Opens the platform and serves it: the API as it runs in a process of its own. */
export async function openApi(options: { routes?: readonly AnyRoute[]; queues?: readonly QueueDefinition[] } = {}) {
  const config = loadConfig();
  const platform = await openPlatform(config, { name: "api", ...defined({ queues: options.queues }) });
  const { bootstrapApiKey } = config.identity;
  if (bootstrapApiKey) await platform.tenancy.ensureBootstrapKey(bootstrapApiKey);
  const tracing = await startTracing({ config: config.tracing, process: "api", logger: platform.logger });
  platform.metrics.watchProcess();
  const operations = await serveOperations(platform, { isWholeFleet: true });
  const api = await serveApi(platform, options.routes);
  platform.logger.info({ url: api.url }, "listening");
  const close = async () => {
    await api.close();
    await operations.close();
    await platform.close();
    await tracing.close();
  };
  return { platform, ready: { url: api.url, metricsUrl: operations.url }, graceMs: config.shutdownGraceMs, close };
}

if (import.meta.main) await runProcess(openApi);
