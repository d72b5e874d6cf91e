import type { ParameterizedContext } from "koa";
import type { Caller } from "../src/tenancy/roles.ts";
import type { BytesReply, JsonReply, RouteDialect } from "./route.ts";

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
  /** The fields that were ignored. */
  ignored?: { name: string; shown: string }[];
  /** Code of the error in the response, for the log line. */
  errorCode?: string;
};

export type ApiContext = ParameterizedContext<RequestState>;

/** A larger JSON is sent as its reader takes it, in bytes. */
export const LARGE_REPLY_BYTES = 256 << 10;

/**
 * Sends a response with all of its headers at once. Koa looks for streams, types and lengths in a body that is nearly always
 * JSON, and Node keeps each header before it writes it. A string or a buffer is sent as it is, anything else as JSON.
 * A large one is left to `sendLarge`, where there is one.
 */
export function sendReply(
  ctx: ApiContext,
  { status, headers, body, text: made }: JsonReply,
  sendLarge?: (reply: BytesReply) => Promise<void>,
): Promise<void> | undefined {
  const { res } = ctx;
  ctx.respond = false;
  const head: Record<string, string> = { ...ctx.state.headers, ...headers };
  if (body === undefined || body === null) {
    res.writeHead(status, head).end();
    return undefined;
  }
  const text = made ?? (typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body));
  head["content-type"] ??= "application/json; charset=utf-8";
  const length = Buffer.byteLength(text);
  if (sendLarge !== undefined && length > LARGE_REPLY_BYTES) {
    const bytes = [typeof text === "string" ? Buffer.from(text) : text];
    return sendLarge({ status, headers: { "content-type": head["content-type"], ...headers }, bytes, length });
  }
  head["content-length"] = String(length);
  res.writeHead(status, head).end(text);
  return undefined;
}
