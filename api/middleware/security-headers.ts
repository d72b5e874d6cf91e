import type { IncomingMessage, ServerResponse } from "node:http";
import helmet from "helmet";
import type { Middleware } from "koa";
import type { RequestState } from "../context.ts";

/** Headers of every answer: nothing of the API is to be framed, sniffed, run or, unless a route says so, kept by a browser. */
export function securityHeaders(): Middleware<RequestState> {
  const headers = { "cache-control": "no-store", ...Object.fromEntries(helmetHeaders()) };
  return function addSecurityHeaders({ state }, next) {
    state.headers = { ...headers, ...state.headers };
    return next();
  };
}

/** What helmet sets. It is the same for every request, so it is asked once: each time it would cost more than a route. */
function helmetHeaders(): Map<string, string> {
  const headers = new Map<string, string>();
  const response = {
    setHeader: (name: string, value: string) => headers.set(name.toLowerCase(), value),
    removeHeader: (name: string) => headers.delete(name.toLowerCase()),
  };
  const setHeaders = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    // These speak to Flash, Internet Explorer and DNS prefetchers of pages; no answer of ours is read by them.
    xPermittedCrossDomainPolicies: false,
    xDownloadOptions: false,
    xDnsPrefetchControl: false,
    xXssProtection: false,
  });
  // It takes whatever looks like Node's request and response, and only sets and removes headers.
  setHeaders({} as IncomingMessage, response as unknown as ServerResponse, () => undefined);
  return headers;
}
