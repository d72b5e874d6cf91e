import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { Duplex } from "node:stream";
import Koa from "koa";
import { loadConfig } from "../src/config/config.ts";
import type { QueueDefinition } from "../src/jobs/queues.ts";
import { defined } from "../src/lib/defined.ts";
import { listen } from "../src/lib/listen.ts";
import { serveAdmin } from "../src/observe/metrics/admin-server.ts";
import { startTracing } from "../src/observe/start-tracing.ts";
import { openPlatform, type Platform } from "../src/platform.ts";
import { runProcess } from "../src/run-process.ts";
import { allRoutes } from "./all-routes.ts";
import type { RequestState } from "./context.ts";
import { respondToErrors } from "./middleware/errors.ts";
import { makeTurns } from "./middleware/rate-limit.ts";
import { requestScope } from "./middleware/request-id.ts";
import { mountRoutes } from "./mount.ts";
import { serveOperatorPages } from "./operator-pages.ts";
import type { AnyRoute } from "./route.ts";
import { documentationRoutes } from "./routes/documentation.ts";
import { makeUnprovenConnections, type UnprovenConnections } from "./unproven-connections.ts";

/** Times that bound what a slow or silent client can hold, in ms. */
const HEADERS_TIMEOUT_MS = 15_000;
const REQUEST_TIMEOUT_MS = 120_000;
const KEEP_ALIVE_TIMEOUT_MS = 65_000; // longer than the usual idle time of a load balancer, so that it closes first
const MAX_HEADERS = 100;

type ApiServer = {
  url: string;
  /**
   * Stops accepting requests, ends streams that only watch, lets running requests end within the grace period, then cuts
   * the rest.
   */
  close(): Promise<void>;
};

/** Serves the platform at the configured address. @throws ConfigError when it is in use, or not this machine's. */
export async function serveApi(platform: Platform, routes: readonly AnyRoute[] = allRoutes): Promise<ApiServer> {
  const { host, port } = platform.config.http;
  const stopping = new AbortController();
  const connections = makeUnprovenConnections();
  const server = createServer(createApp(platform, { routes, stopping: stopping.signal, connections }).callback());
  configureServer(server);
  connections.watch(server);
  const url = await listen(server, { host, port, setting: "HOST and PORT" });
  const close = () => {
    stopping.abort();
    return drain(server, platform.config.shutdownGraceMs);
  };
  return { url, close };
}

/** The HTTP application over a platform, without a listening socket. `stopping` aborts when it is to end. */
function createApp(
  platform: Platform,
  {
    routes,
    stopping,
    connections,
  }: { routes: readonly AnyRoute[]; stopping: AbortSignal; connections: UnprovenConnections },
): Koa<RequestState> {
  const { logger } = platform;
  const app = new Koa<RequestState>();
  app.on("error", (error: unknown) => logger.debug({ err: error }, "the connection failed")); // the response is already written
  app.use(requestScope(platform, stopping));
  const takeTurn = makeTurns();
  app.use(respondToErrors({ logger, publicUrl: platform.config.http.publicUrl, takeTurn }));
  app.use(serveOperatorPages(platform));
  mountRoutes(app, platform, {
    routes: [...routes, ...documentationRoutes(routes)],
    stopping,
    takeTurn,
    connections,
  });
  return app;
}

/**
 * Sets the limits of an HTTP server: time for the head and for the whole request (slow loris), head size, idle connections.
 * What is not HTTP gets a JSON response, and a body announced by `Expect: 100-continue` is only requested when it is wanted.
 */
function configureServer(server: Server): void {
  server.headersTimeout = HEADERS_TIMEOUT_MS;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
  server.maxHeadersCount = MAX_HEADERS;
  server.on("checkContinue", (request, response) => server.emit("request", request, response));
  server.on("clientError", respondToClientError);
}

const clientErrors: Record<string, [status: string, code: string, message: string]> = {
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", "request_too_large", "The headers are too large."],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "timeout", "The request did not arrive in time."],
};

function respondToClientError(error: Error & { code?: string }, socket: Duplex): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const known = clientErrors[error.code ?? ""];
  const [status, code, message] = known ?? ["400 Bad Request", "invalid_request", "This is not a valid HTTP request."];
  const body = JSON.stringify({ error: { type: "invalid_request_error", code, message } });
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json; charset=utf-8\r\nconnection: close\r\n`;
  socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
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
  const operations = await serveAdmin(platform, { isWholeFleet: true });
  const api = await serveApi(platform, options.routes);
  platform.logger.info({ url: api.url }, "listening");
  const search = platform.rag.describeSearch();
  platform.logger.info(search);
  const close = async () => {
    await api.close();
    await operations.close();
    await platform.close();
    await tracing.close();
  };
  return {
    platform,
    ready: { url: api.url, metricsUrl: operations.url, search },
    graceMs: config.shutdownGraceMs,
    close,
  };
}

if (import.meta.main) await runProcess(openApi);
