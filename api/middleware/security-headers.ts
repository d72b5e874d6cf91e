import type { Middleware } from "koa";
import helmet from "koa-helmet";

/** Headers of every answer: nothing of the API is to be framed, sniffed, run or, unless a route says so, kept by a browser. */
export function securityHeaders(): Middleware {
  const setHelmetHeaders = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
  });
  return function setSecurityHeaders(ctx, next) {
    ctx.res.setHeader("cache-control", "no-store");
    return setHelmetHeaders(ctx, next);
  };
}
