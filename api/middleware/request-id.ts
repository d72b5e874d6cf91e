import type { Middleware } from "koa";
import { defined } from "../../src/lib/defined.ts";
import { isId, newId } from "../../src/lib/ids.ts";
import type { Logger } from "../../src/observe/logger.ts";
import type { HttpMetrics } from "../../src/observe/metrics/metrics.ts";
import { beginSpan, type Traced, untraced } from "../../src/observe/tracing.ts";
import type { RequestState } from "../context.ts";

/** The date of the HTTP contract, as `/openapi.json` and the tool server name it. */
export const apiVersion = "2026-11-01";

/** Headers of every response: a browser must not frame, sniff, run or, unless a route allows it, cache it. */
const securityHeaders = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none';frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "origin-agent-cluster": "?1",
  "referrer-policy": "no-referrer",
  "strict-transport-security": "max-age=31536000; includeSubDomains",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

const saneRequestId = /^[0-9A-Za-z][0-9A-Za-z._:-]{0,127}$/;

type ScopeDeps = { logger: Logger; metrics: { http: HttpMetrics } };

/**
 * Opens the scope of a request: its id (the client's, if it is well-formed), the signal that aborts when the client
 * disconnects, and one log line and its metrics at the end. Only the socket's `close` is trusted, no framework signal. Once
 * `stopping` has aborted, no connection outlives its response: a client that keeps one would keep the server.
 */
export function requestScope({ logger, metrics }: ScopeDeps, stopping: AbortSignal): Middleware<RequestState> {
  // The line's fields are all ours and hold no secrets; searching each for them would cost more than the line itself.
  const requests = logger.child({}, { redact: { paths: [] } });
  return function openRequestScope(ctx, next) {
    const startedAt = performance.now();
    const sent = ctx.req.headers["x-request-id"];
    const requestId = typeof sent === "string" && saneRequestId.test(sent) ? sent : newId("request");
    const controller = new AbortController();
    const { state, res } = ctx;
    state.requestId = requestId;
    state.signal = controller.signal;
    state.headers = { ...securityHeaders, "x-request-id": requestId };
    metrics.http.entered();
    const method = ctx.req.method ?? "";
    const traced = beginSpan({
      name: method,
      kind: "SERVER",
      parent: { traceparent: ctx.req.headers.traceparent },
      attributes: { "http.request.method": method },
    });
    res.once("close", () => {
      const isComplete = res.writableFinished;
      if (!isComplete) controller.abort();
      else if (stopping.aborted) ctx.req.socket.destroySoon();
      const status = isComplete ? res.statusCode : 499;
      const elapsedMs = performance.now() - startedAt;
      metrics.http.left({ method, route: state.route ?? "none", status, seconds: elapsedMs / 1_000 });
      const { tenantId, keyId } = state.caller ?? {};
      const ms = Math.round(elapsedMs * 10) / 10;
      const path = toLoggedPath(ctx.path, state.route);
      const line = { requestId, method, path, status, ms, tenantId, keyId, code: state.errorCode };
      traced.run(() => requests.info(line, "request")); // it leaves out what is undefined
      if (traced !== untraced) endSpan(traced, state, method, status);
    });
    return traced.run(next);
  };
}

/** Parts of a path that are logged, and the parts of an unknown path that look like names. */
const MAX_LOGGED_PARTS = 8;
const nameLike = /^[a-z._-]{0,30}$/i;

/** The path for the log line: of what the caller filled in only ids of ours, since it may be anything, and the route's name for the rest. */
function toLoggedPath(path: string, route: string | undefined): string {
  if (path === route) return path;
  const pattern = route?.split("/");
  const parts = path.split("/", MAX_LOGGED_PARTS);
  return parts.map((part, at) => (isId(part) ? part : (pattern?.[at] ?? (nameLike.test(part) ? part : "…")))).join("/");
}

/** Ends a request's span under the name of its route; only 5xx make it a failure. */
function endSpan(
  traced: Traced,
  { route, requestId, caller, errorCode }: RequestState,
  method: string,
  status: number,
) {
  traced.end({
    ...defined({ name: route && `${method} ${route}` }),
    attributes: {
      "http.response.status_code": status,
      "switchyard.request_id": requestId,
      ...defined({ "http.route": route, "switchyard.tenant_id": caller?.tenantId }),
    },
    failure: status >= 500 ? (errorCode ?? String(status)) : undefined,
  });
}
