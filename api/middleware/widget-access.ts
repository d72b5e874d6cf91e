import { defaultModelAlias } from "../../src/gateway/providers/edge/models.ts";
import type { ChatBody } from "../../src/gateway/schemas.ts";
import { AppError, invalidRequest } from "../../src/lib/errors.ts";
import type { WidgetScope } from "../../src/tenancy/roles.ts";
import { type ApiContext, sendReply } from "../context.ts";

/** Headers of a response that a page may read. */
const EXPOSED = "x-request-id, retry-after, ratelimit, ratelimit-policy, x-svc-ignored";
/** Headers that a page may send, including documented ones that a widget key cannot use: they must not break a page. */
const ALLOWED_HEADERS =
  "authorization, content-type, idempotency-key, x-request-id, x-svc-debug, x-svc-options, x-svc-surface";
/** Largest body of a widget key, in bytes: anybody can send one. */
export const MAX_WIDGET_BYTES = 64 << 10;
/** All that the body of a key that answers from documents may have. */
const answeredFields: ReadonlySet<string> = new Set(["messages", "model", "stream", "maxTokens", "max_tokens"]);
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
export function admitWidget(ctx: ApiContext, widget: WidgetScope, isForWidgets: boolean): void {
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
export function requireKnownFields({ state }: ApiContext, { answersFrom }: WidgetScope): void {
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

/** A visitor's body: without tools, with a model of the key and a cap on the tokens. @throws AppError `invalid_request`. */
export function boundForWidget(
  body: ChatBody,
  widget: WidgetScope,
  mostTokens: number,
): ChatBody & { maxTokens: number } {
  requireVisitorFields(body, widget);
  const maxTokens = Math.min(mostTokens, widget.maxTokens ?? mostTokens);
  const wanted = body.model ?? defaultModelAlias;
  const models = widget.models ?? [wanted];
  const model = wanted === defaultModelAlias && !models.includes(wanted) ? models[0] : wanted;
  if (model === undefined || !models.includes(model)) {
    throw invalidRequest("model", `model: this widget key takes ${models.join(", ")}.`);
  }
  for (const param of ["tools", "tool_choice", "toolChoice"] as const) {
    if ((body[param] ?? undefined) !== undefined) throw invalidRequest(param, `${param}: a widget key takes no tools.`);
  }
  for (const param of ["response_format", "responseFormat"] as const) {
    if (body[param]?.type !== "json_schema") continue;
    throw invalidRequest(param, `${param}: a widget key takes no schemas.`); // checking by them takes its tenant's time
  }
  requireTexts(body.messages);
  for (const param of ["maxTokens", "max_tokens"] as const) {
    if ((body[param] ?? 0) > maxTokens) {
      throw invalidRequest(param, `${param}: a widget key gets ${maxTokens} tokens at most.`);
    }
  }
  return { ...body, model, maxTokens: body.maxTokens ?? body.max_tokens ?? maxTokens };
}

/** @throws AppError `invalid_request` for a picture or a file. */
function requireTexts(messages: ChatBody["messages"]): void {
  for (const [place, { content }] of messages.entries()) {
    const part = Array.isArray(content) ? content.findIndex(({ type }) => type !== "text") : -1;
    if (part < 0) continue;
    const param = `messages[${place}].content[${part}]`;
    throw invalidRequest(param, `${param}: a widget key takes texts only.`);
  }
}

/** @throws AppError `invalid_request` for a field that a widget key which searches has no use for. */
function requireVisitorFields(body: ChatBody, { agentId, answersFrom }: WidgetScope): void {
  if (answersFrom === undefined) return;
  const given = Object.entries(body).flatMap(([name, value]) => (value === undefined || value === null ? [] : [name]));
  const hasOwnModel = agentId !== undefined && body.model !== defaultModelAlias;
  const foreign = given.find((name) => !answeredFields.has(name) || (name === "model" && hasOwnModel));
  if (foreign !== undefined) throw invalidRequest(foreign, `${foreign}: this widget key takes no such field.`);
}
