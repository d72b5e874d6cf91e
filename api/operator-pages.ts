import { createHash, timingSafeEqual } from "node:crypto";
import type { Middleware } from "koa";
import { AppError, notFound } from "../src/errors.ts";
import { renderMetrics } from "../src/metrics/admin-server.ts";
import type { Platform } from "../src/platform.ts";
import { type ApiContext, type RequestState, sendReply } from "./context.ts";
import { toErrorBody } from "./middleware/errors.ts";

/** Where operators find Bull Board. */
export const boardPath = "/admin/queues";
/** What Prometheus scrapes; also on `METRICS_PORT`. */
const metricsPath = "/metrics";

/** The board loads only its own files; some of its styles are inline, and fonts of other sites are blocked. */
const boardPolicy = [
  "default-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "base-uri 'self'",
  "object-src 'none'",
  "frame-ancestors 'none'",
].join("; ");

/**
 * Bull Board and the metrics of the whole service, for the operator's `ADMIN_TOKEN` as the password of HTTP Basic or as bearer.
 * A tenant's key opens neither. Without an `ADMIN_TOKEN` both are a 404. The board is loaded at its first use; it cannot
 * retry failed jobs, because their records are final.
 */
export function serveOperatorPages(platform: Platform): Middleware<RequestState> {
  const { adminToken } = platform.config.http;
  let board: Promise<Middleware> | undefined;
  return async function serveOperatorPage(ctx, next) {
    const isBoard = ctx.path === boardPath || ctx.path.startsWith(`${boardPath}/`);
    if (!isBoard && ctx.path !== metricsPath) return next();
    ctx.state.route = isBoard ? boardPath : metricsPath;
    if (adminToken === undefined) throw notFound("page");
    if (!isOperator(ctx.get("authorization"), adminToken)) return askForPassword(ctx);
    if (!isBoard) return sendMetrics(ctx, platform);
    rejectForeignOrigin(ctx);
    board ??= loadBoard(platform);
    const serve = await board;
    ctx.set({ ...ctx.state.headers, "content-security-policy": boardPolicy }); // Koa writes the board's responses
    await serve(ctx, next);
  };
}

async function sendMetrics(ctx: ApiContext, platform: Platform): Promise<void> {
  if (ctx.method !== "GET" && ctx.method !== "HEAD") {
    ctx.state.headers.allow = "GET, HEAD";
    throw new AppError("method_not_allowed", `${metricsPath} does not take ${ctx.method}.`);
  }
  const { contentType, text } = await renderMetrics(platform, { isWholeFleet: true });
  sendReply(ctx, { status: 200, headers: { "content-type": contentType }, body: text });
}

async function loadBoard(platform: Platform): Promise<Middleware> {
  const [{ createBullBoard }, { BullMQAdapter }, { KoaAdapter }] = await Promise.all([
    import("@bull-board/api"),
    import("@bull-board/api/bullMQAdapter"),
    import("@bull-board/koa"),
  ]);
  const serverAdapter = new KoaAdapter().setBasePath(boardPath);
  createBullBoard({
    queues: platform.queues.instances().map((queue) => new BullMQAdapter(queue, { allowRetries: false })),
    serverAdapter,
    options: { uiConfig: { boardTitle: "Switchyard" } },
  });
  return serverAdapter.registerPlugin();
}

/**
 * A browser sends the operator's password by itself, so another site must not be able to act with it. Browsers name the
 * site in `Origin` with every request that changes something, and in `Sec-Fetch-Site` where the connection is trustworthy.
 */
function rejectForeignOrigin(ctx: ApiContext): void {
  if (ctx.method === "GET" || ctx.method === "HEAD") return;
  const origin = ctx.get("origin");
  const isOwnOrigin = origin === "" || origin.replace(/^https?:\/\//, "") === ctx.get("host");
  if (isOwnOrigin && ["", "same-origin", "none"].includes(ctx.get("sec-fetch-site"))) return;
  throw new AppError("insufficient_scope", "Another site may not act on the queues.");
}

/** A 401 that makes a browser ask for the password. */
function askForPassword(ctx: ApiContext): void {
  const body = toErrorBody(new AppError("missing_api_key", "Operators only."), ctx.state.requestId);
  const headers = { "www-authenticate": 'Basic realm="switchyard operators", charset="UTF-8"' };
  sendReply(ctx, { status: 401, headers, body });
}

/** Whether an `Authorization` header holds the operator's token, as Basic password or as bearer. */
function isOperator(header: string, adminToken: string): boolean {
  const [scheme = "", value = ""] = header.split(/ +/, 2);
  if (scheme.toLowerCase() === "bearer") return isSame(value, adminToken);
  if (scheme.toLowerCase() !== "basic") return false;
  const text = Buffer.from(value, "base64").toString("utf8");
  return isSame(text.slice(text.indexOf(":") + 1), adminToken);
}

/** Compares in a time that reveals neither the length nor where the two differ. */
function isSame(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
