import { AppError, invalidRequest } from "../../src/lib/errors.ts";
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
 * Lets a page read the response of a route for widgets (https://fetch.spec.whatwg.org/#http-cors-protocol), a refusal too: why a
 * key is refused helps the page's author, and says nothing of the tenant. Call it before the key is known.
 */
export function showToPage(ctx: ApiContext): void {
  const origin = ctx.get("origin");
  ctx.state.headers.vary = "origin";
  if (origin === "") return;
  ctx.state.headers["access-control-allow-origin"] = origin;
  ctx.state.headers["access-control-expose-headers"] = EXPOSED;
}

/**
 * Lets a page of an allowed origin use its widget key.
 * @throws AppError `insufficient_scope` for a route that is not for widgets, and for a page of another origin.
 */
export function admitWidget(ctx: ApiContext, widget: NonNullable<Caller["widget"]>, isForWidgets: boolean): void {
  if (!isForWidgets) throw new AppError("insufficient_scope", "A widget key can only chat.");
  const origin = ctx.get("origin");
  if (widget.allowedOrigins === undefined || widget.allowedOrigins.includes(origin)) return;
  const page = origin === "" ? "calls without an Origin" : `pages of ${origin.slice(0, 300)}`;
  const message = `This widget key is not for ${page}: its allowedOrigins do not have it.`;
  throw new AppError("insufficient_scope", message);
}

/** Takes `showToPage` back: API keys do not belong in a page, and so no page reads what they get. */
export function hideFromPage({ state }: ApiContext): void {
  for (const name of ["access-control-allow-origin", "access-control-expose-headers", "vary"])
    delete state.headers[name];
}

/** @throws AppError `invalid_request` for a field that nobody knows, if the key answers from documents: it might have been a limit. */
export function requireKnownFields({ state }: ApiContext, { answersFrom }: NonNullable<Caller["widget"]>): void {
  const [unknown] = state.ignored ?? [];
  if (answersFrom === undefined || unknown === undefined) return;
  throw invalidRequest(unknown.name, `${unknown.shown}: this widget key takes no such field.`);
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
