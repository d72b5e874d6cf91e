import type { ParameterizedContext } from "koa";
import type { Caller } from "../src/tenancy/roles.ts";

/** What the middleware keep of a request while it is served. */
export type RequestState = {
  requestId: string;
  /** What every answer has, unless it says otherwise itself. Sent with its head: Node is not told of them before. */
  headers: Record<string, string>;
  /** Aborts when the client goes away before its answer is complete; from the socket's `close`. */
  signal: AbortSignal;
  /** The pattern of the route that serves it; none when no route does. */
  route?: string;
  caller?: Caller;
  /** Code of the error that was answered, for the log line. */
  errorCode?: string;
};

export type ApiContext = ParameterizedContext<RequestState>;
