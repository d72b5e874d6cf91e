import type { ApiContext } from "./context.ts";
import type { JsonReply } from "./route.ts";

/**
 * Sends an answer with all of its headers in one go. Koa's own way to an answer looks for streams, types and lengths in a body
 * that is JSON nearly always, and Node's keeps each header before it writes it.
 * A body that is text is sent as it is, anything else as JSON; an answer without one has none.
 */
export function sendReply(ctx: ApiContext, { status, headers, body }: JsonReply): void {
  const { res } = ctx;
  ctx.respond = false;
  const head: Record<string, string | number> = { ...ctx.state.headers, ...headers };
  if (body === undefined || body === null) {
    res.writeHead(status, head).end();
    return;
  }
  const text = typeof body === "string" ? body : JSON.stringify(body);
  head["content-type"] ??= "application/json; charset=utf-8";
  head["content-length"] = Buffer.byteLength(text);
  res.writeHead(status, head).end(text);
}
