import type { ParameterizedContext } from "koa";
import type { Caller } from "../src/tenancy/roles.ts";

/** What the middleware keeps about a request while it is served. */
export type RequestState = {
  requestId: string;
  /** Headers of the response, unless its reply overrides them: the one place to set a header. Sent together with the head. */
  headers: Record<string, string>;
  /** Aborts when the client disconnects before its response is complete; from the socket's `close`. */
  signal: AbortSignal;
  /** The pattern of the route that serves it; none when no route does. */
  route?: string;
  caller?: Caller;
  /** The path for the log, where the one of the request holds a refused value. */
  loggedPath?: string;
  /** Names of the fields that were ignored. */
  ignored?: string[];
  /** Code of the error in the response, for the log line. */
  errorCode?: string;
};

export type ApiContext = ParameterizedContext<RequestState>;
