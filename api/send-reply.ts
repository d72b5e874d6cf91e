import type { ApiContext } from "./context.ts";
import type { JsonReply } from "./route.ts";

/**
 * Sends a response with all of its headers at once. Koa looks for streams, types and lengths in a body that is nearly always
 * JSON, and Node keeps each header before it writes it. A string or a buffer is sent as it is, anything else as JSON.
 */
export function sendReply(ctx: ApiContext, { status, headers, body }: JsonReply): void {
  const { res } = ctx;
  ctx.respond = false;
  const head: Record<string, string | number> = { ...ctx.state.headers, ...headers };
  if (body === undefined || body === null) {
    res.writeHead(status, head).end();
    return;
  }
  const text = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  head["content-type"] ??= "application/json; charset=utf-8";
  head["content-length"] = Buffer.byteLength(text);
  res.writeHead(status, head).end(text);
}
