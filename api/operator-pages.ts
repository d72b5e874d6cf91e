import type { Middleware } from "koa";
import { AppError, notFound } from "../src/lib/errors.ts";
import { makeClientAddress } from "../src/net/client-address.ts";
import { renderMetrics } from "../src/observe/metrics/admin-server.ts";
import type { Platform } from "../src/platform.ts";
import { type ApiContext, type RequestState, sendReply } from "./context.ts";
import { toErrorBody } from "./middleware/errors.ts";
import { isOperator } from "./middleware/operator.ts";

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
 * Bull Board and the metrics of the whole service, for the operator's `ADMIN_TOKEN` as the password of HTTP Basic or as bearer,
 * or for a session of the console. A tenant's key opens neither. Without an `ADMIN_TOKEN` both are a 404. The board is loaded at its first use; it cannot
 * retry failed jobs, because their records are final, and it only reads unless the settings say otherwise.
 */
export function serveOperatorPages(platform: Platform): Middleware<RequestState> {
  const { operator, config } = platform;
  const { allowedHosts, trustedProxies } = config.http;
  const findClient = makeClientAddress(trustedProxies);
  let board: Promise<Middleware> | undefined;
  return async function serveOperatorPage(ctx, next) {
    const isBoard = ctx.path === boardPath || ctx.path.startsWith(`${boardPath}/`);
    if (!isBoard && ctx.path !== metricsPath) return next();
    ctx.state.route = isBoard ? boardPath : metricsPath;
    if (!operator.isSet) throw notFound("page");
    const client = () =>
      findClient({ remoteAddress: ctx.req.socket.remoteAddress, forwardedFor: ctx.get("x-forwarded-for") });
    if (!(await isOperator(ctx, { operator, allowedHosts, client }))) return askForPassword(ctx);
    if (!isBoard) return sendMetrics(ctx, platform);
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
    queues: platform.queues
      .instances()
      .map(
        (queue) => new BullMQAdapter(queue, { allowRetries: false, readOnlyMode: !platform.config.http.boardWrites }),
      ),
    serverAdapter,
    options: { uiConfig: { boardTitle: "Switchyard" } },
  });
  return serverAdapter.registerPlugin();
}

/** A 401 that makes a browser ask for the password. */
function askForPassword(ctx: ApiContext): void {
  const body = toErrorBody(new AppError("missing_api_key", "Operators only."), ctx.state.requestId);
  const headers = { "www-authenticate": 'Basic realm="switchyard operators", charset="UTF-8"' };
  sendReply(ctx, { status: 401, headers, body });
}
