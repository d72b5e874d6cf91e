import { AppError } from "../../src/lib/errors.ts";
import type { Caller } from "../../src/tenancy/roles.ts";
import { type ApiContext, sendReply } from "../context.ts";

/** Headers of a response that a page may read. */
const EXPOSED = "x-request-id, retry-after, ratelimit, ratelimit-policy, x-svc-ignored";
/** Headers that a page may send, including documented ones that a widget key cannot use: they must not break a page. */
const ALLOWED_HEADERS =
  "authorization, content-type, idempotency-key, x-request-id, x-svc-debug, x-svc-options, x-svc-surface";
/** How long a browser may keep the response to a preflight, in seconds. */
const PREFLIGHT_MAX_AGE_S = 600;

/**
 * Lets a page of an allowed origin use its widget key (https://fetch.spec.whatwg.org/#http-cors-protocol). API keys get none
 * of these headers: they do not belong in a page.
 * @throws AppError `insufficient_scope` for a route that is not for widgets, and for a page of another origin.
 */
export function admitWidget(ctx: ApiContext, widget: NonNullable<Caller["widget"]>, isForWidgets: boolean): void {
  if (!isForWidgets) throw new AppError("insufficient_scope", "A widget key can only chat.");
  const origin = ctx.get("origin");
  ctx.state.headers.vary = "origin";
  if (widget.allowedOrigins !== undefined && !widget.allowedOrigins.includes(origin)) {
    throw new AppError("insufficient_scope", "This widget key is not for pages of this origin.");
  }
  if (origin === "") return;
  ctx.state.headers["access-control-allow-origin"] = origin;
  ctx.state.headers["access-control-expose-headers"] = EXPOSED;
}

/** Responds to a preflight, of any page: it carries no key, and the key of the call decides whether the page may call. */
export function respondToPreflight(ctx: ApiContext): void {
  const headers = {
    "access-control-allow-origin": ctx.get("origin"),
    "access-control-allow-methods": "POST",
    "access-control-allow-headers": ALLOWED_HEADERS,
    "access-control-max-age": String(PREFLIGHT_MAX_AGE_S),
    vary: "origin",
  };
  sendReply(ctx, { status: 204, headers });
}
