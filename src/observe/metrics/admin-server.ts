import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { listen } from "../../lib/listen.ts";
import { checkOwnHealth, type Inspected, inspect } from "../health.ts";
import type { Logger } from "../logger.ts";
import type { Metrics } from "./metrics.ts";

/** Longest time for a request to arrive, in ms. */
const REQUEST_TIMEOUT_MS = 10_000;

type Platform = Inspected & {
  metrics: Metrics;
  logger: Logger;
  config: { metrics: { host: string; port: number | undefined } };
};

type OpsReply = { status: number; contentType: string; text: string };

/** The metrics of this process; with `isWholeFleet` those of queues and parts too, which takes 2 s more at most. */
export async function renderMetrics(platform: Platform, { isWholeFleet }: { isWholeFleet: boolean }) {
  if (isWholeFleet) platform.metrics.fleet.set(await inspect(platform));
  return platform.metrics.render();
}

/**
 * The admin server: `/metrics`, `/healthz` and `/readyz` of this one process on `METRICS_PORT`, for scrapers and probes
 * inside the operator's network, without a credential. A worker has no other port. Without the port it does nothing, and has
 * no `url`.
 * @throws ConfigError when the address cannot be used.
 */
export async function serveAdmin(platform: Platform, scope: { isWholeFleet: boolean }) {
  const { host, port } = platform.config.metrics;
  if (port === undefined) return { url: undefined, close: async () => undefined };
  const server = createServer((request, response) => {
    const replying = respond(platform, scope, request).catch((error: unknown): OpsReply => {
      platform.logger.error({ err: error }, "metrics could not be collected");
      return { status: 500, contentType: "text/plain", text: "internal error\n" };
    });
    void replying.then((reply) => write(response, reply));
  });
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.headersTimeout = REQUEST_TIMEOUT_MS;
  const url = await listen(server, { host, port, setting: "HOST and METRICS_PORT" });
  return { url, close: () => closeServer(server) };
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}

async function respond(
  platform: Platform,
  scope: { isWholeFleet: boolean },
  { method = "", url = "" }: IncomingMessage,
): Promise<OpsReply> {
  const path = method === "GET" || method === "HEAD" ? url.split("?", 1)[0] : undefined;
  if (path === "/metrics") return { status: 200, ...(await renderMetrics(platform, scope)) };
  if (path === "/healthz") return json(200, { status: "ok" });
  if (path === "/readyz") {
    // An API answers much without Redis, a worker does nothing without it.
    const health = await checkOwnHealth(platform, scope.isWholeFleet ? ["store"] : ["store", "redis"]);
    return json(health.status === "not_ready" ? 503 : 200, health);
  }
  return { status: 404, contentType: "text/plain", text: "GET /metrics, /healthz or /readyz\n" };
}

function json(status: number, body: unknown): OpsReply {
  return { status, contentType: "application/json; charset=utf-8", text: JSON.stringify(body) };
}

function write(response: ServerResponse, { status, contentType, text }: OpsReply): void {
  response.writeHead(status, {
    "content-type": contentType,
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  response.end(text);
}
