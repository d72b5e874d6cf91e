import { AppError } from "../../src/errors.ts";
import type { Caller } from "../../src/tenancy/roles.ts";
import type { ApiContext } from "../context.ts";
import { sendReply } from "../send-reply.ts";

/** What a page may read of an answer besides its body. */
const EXPOSED = "x-request-id, retry-after, ratelimit, ratelimit-policy";
/** What a page may send. */
const ALLOWED_HEADERS = "authorization, content-type, x-request-id, x-svc-surface";
/** How long a browser may remember that it may ask, in seconds. */
const PREFLIGHT_MAX_AGE_S = 600;

/**
 * Lets a page of an allowed origin use its widget key (https://fetch.spec.whatwg.org/#http-cors-protocol). Keys that are no
 * widget keys get none of these headers: they have no place in a page.
 * @throws AppError `insufficient_scope` for a route that is not for widgets, and for a page of another origin.
 */
export function admitWidget(ctx: ApiContext, caller: Caller, isForWidgets: boolean): void {
  const { widget } = caller;
  if (widget === undefined) return;
  if (!isForWidgets) throw new AppError("insufficient_scope", "A widget key can only chat.");
  const origin = ctx.get("origin");
  ctx.vary("origin");
  if (widget.allowedOrigins !== undefined && !widget.allowedOrigins.includes(origin)) {
    throw new AppError("insufficient_scope", "This widget key is not for pages of this origin.");
  }
  if (origin === "") return;
  ctx.set("access-control-allow-origin", origin);
  ctx.set("access-control-expose-headers", EXPOSED);
}

/**
 * Answers a browser that asks ahead whether a page may call a route for widgets. It tells no key yet, so that any page may
 * ask; whether it may call is decided by its key.
 */
export function answerPreflight(ctx: ApiContext): void {
  const headers = {
    "access-control-allow-origin": ctx.get("origin"),
    "access-control-allow-methods": "POST",
    "access-control-allow-headers": ALLOWED_HEADERS,
    "access-control-max-age": String(PREFLIGHT_MAX_AGE_S),
    vary: "origin",
  };
  sendReply(ctx, { status: 204, headers });
}
