import type { Middleware } from "koa";
import { newId } from "../../src/ids.ts";
import type { Logger } from "../../src/logger.ts";
import type { HttpMetrics } from "../../src/metrics/http-metrics.ts";
import { beginSpan, type Traced } from "../../src/tracing.ts";
import type { RequestState } from "../context.ts";

/** The date of the HTTP contract; additive changes keep it. */
export const apiVersion = "2026-11-01";

/** Headers of every response: a browser is not to frame, sniff or run it, nor, unless a route says so, to keep it. */
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
 * Opens the scope of a request: its id (the client's, when that is a sane one), the signal that aborts when the client
 * leaves, and one log line and its metrics when it is over. Works without a framework signal: only the socket's `close` is trusted.
 */
export function requestScope({ logger, metrics }: ScopeDeps): Middleware<RequestState> {
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
    state.headers = { ...securityHeaders, "x-request-id": requestId, "x-api-version": apiVersion };
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
      const status = isComplete ? res.statusCode : 499;
      const ms = performance.now() - startedAt;
      metrics.http.left({ method, route: state.route ?? "none", status, seconds: ms / 1_000 });
      traced.run(() =>
        requests.info(
          {
            requestId,
            method,
            path: state.loggedPath ?? ctx.path,
            status,
            ms: Math.round(ms * 10) / 10,
            ...(state.caller ? { tenantId: state.caller.tenantId, keyId: state.caller.keyId } : {}),
            ...(state.errorCode ? { code: state.errorCode } : {}),
          },
          "request",
        ),
      );
      endSpan(traced, state, method, status);
    });
    return traced.run(next);
  };
}

/** Ends a request's span under the name of its route; only 5xx make it a failure. */
function endSpan(traced: Traced, state: RequestState, method: string, status: number): void {
  traced.end({
    ...(state.route === undefined ? {} : { name: `${method} ${state.route}` }),
    attributes: {
      "http.response.status_code": status,
      "switchyard.request_id": state.requestId,
      ...(state.route === undefined ? {} : { "http.route": state.route }),
      ...(state.caller ? { "switchyard.tenant_id": state.caller.tenantId } : {}),
    },
    failure: status >= 500 ? (state.errorCode ?? String(status)) : undefined,
  });
}
