import type { Middleware } from "koa";
import { AppError, notFound } from "../src/errors.ts";
import type { Platform } from "../src/platform.ts";
import type { RequestState } from "./context.ts";
import { admitOperator } from "./middleware/operator.ts";

/** Where operators find Bull Board. */
export const boardPath = "/admin/queues";

/** The board's page loads its own files only; its styles are partly inline, and fonts of others stay unloaded. */
const boardPolicy = [
  "default-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "base-uri 'self'",
  "object-src 'none'",
  "frame-ancestors 'none'",
].join("; ");

/**
 * Bull Board behind the operator's credential `ADMIN_TOKEN`, as the password of HTTP Basic or as bearer; a tenant's key
 * opens nothing here. Without an `ADMIN_TOKEN` there is no board (404). It is loaded at its first use.
 * Failed jobs cannot be retried from it: their records are final, and the records are the truth.
 */
export function serveBoard(platform: Platform): Middleware<RequestState> {
  const { adminToken } = platform.config.http;
  let board: Promise<Middleware> | undefined;
  return async function serveBoardRequest(ctx, next) {
    if (ctx.path !== boardPath && !ctx.path.startsWith(`${boardPath}/`)) return next();
    if (adminToken === undefined) throw notFound("page");
    ctx.state.route = boardPath;
    if (!admitOperator(ctx, adminToken)) return;
    refuseForeignOrigin(ctx.method, ctx.get("sec-fetch-site"));
    board ??= loadBoard(platform);
    const serve = await board;
    ctx.set({ ...ctx.state.headers, "content-security-policy": boardPolicy }); // the board's answers are Koa's
    await serve(ctx, next);
  };
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

/** A browser sends the operator's password along by itself, so another site must not be able to make it act. */
function refuseForeignOrigin(method: string, fetchSite: string): void {
  const isReading = method === "GET" || method === "HEAD";
  if (isReading || fetchSite === "" || fetchSite === "same-origin" || fetchSite === "none") return;
  throw new AppError("insufficient_scope", "Another site may not act on the queues.");
}
