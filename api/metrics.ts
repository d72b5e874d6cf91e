import type { Middleware } from "koa";
import { AppError, notFound } from "../src/errors.ts";
import { renderMetrics } from "../src/metrics/render.ts";
import type { Platform } from "../src/platform.ts";
import type { RequestState } from "./context.ts";
import { admitOperator } from "./middleware/operator.ts";
import { sendReply } from "./send-reply.ts";

const metricsPath = "/metrics";

/**
 * What Prometheus scrapes, behind the operator's credential: it tells what the service costs and how busy it is. Without an
 * `ADMIN_TOKEN` it is not here (404), only on `METRICS_PORT`.
 */
export function serveMetrics(platform: Platform): Middleware<RequestState> {
  const { adminToken } = platform.config.http;
  return async function serveMetricsRequest(ctx, next) {
    if (ctx.path !== metricsPath) return next();
    ctx.state.route = metricsPath;
    if (adminToken === undefined) throw notFound("page");
    if (!admitOperator(ctx, adminToken)) return;
    if (ctx.method !== "GET" && ctx.method !== "HEAD") {
      ctx.set("allow", "GET, HEAD");
      throw new AppError("method_not_allowed", `${metricsPath} does not take ${ctx.method}.`);
    }
    const { contentType, text } = await renderMetrics(platform, { isWholeFleet: true });
    sendReply(ctx, { status: 200, headers: { "content-type": contentType }, body: text });
  };
}
