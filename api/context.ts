import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ParameterizedContext } from "koa";
import type { Caller } from "../src/tenancy/roles.ts";
import type { JsonReply, RouteDialect } from "./route.ts";

/** What the middleware keeps about a request while it is served. */
export type RequestState = {
  requestId: string;
  /** Headers of the response, unless its reply overrides them: the one place to set a header. Sent together with the head. */
  headers: Record<string, string>;
  /** Aborts when the client disconnects before its response is complete; from the socket's `close`. */
  signal: AbortSignal;
  /** The pattern of the route that serves it; none when no route does. */
  route?: string;
  /** How that route reports errors, where it is not as we do. */
  dialect?: RouteDialect;
  caller?: Caller;
  /** Names of the fields that were ignored. */
  ignored?: string[];
  /** Code of the error in the response, for the log line. */
  errorCode?: string;
};

export type ApiContext = ParameterizedContext<RequestState>;

/**
 * Sends a response with all of its headers at once. Koa looks for streams, types and lengths in a body that is nearly always
 * JSON, and Node keeps each header before it writes it. A string, a buffer and a stream are sent as they are, anything else as JSON.
 */
export function sendReply(ctx: ApiContext, { status, headers, body, text: made }: JsonReply): void {
  const { res } = ctx;
  ctx.respond = false;
  const head: Record<string, string | number> = { ...ctx.state.headers, ...headers };
  if (body === undefined || body === null) {
    res.writeHead(status, head).end();
    return;
  }
  if (body instanceof Readable) {
    res.writeHead(status, head);
    pipeline(body, res).catch(() => res.destroy()); // what its reader has is not whole, and the cut connection says so
    return;
  }
  const text = made ?? (typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body));
  head["content-type"] ??= "application/json; charset=utf-8";
  head["content-length"] = Buffer.byteLength(text);
  res.writeHead(status, head).end(text);
}
