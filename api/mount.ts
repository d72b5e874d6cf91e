import Router from "@koa/router";
import type Koa from "koa";
import type { GuardCount } from "../src/guards/rules.ts";
import type { Presence } from "../src/isolation/pace.ts";
import { AppError } from "../src/lib/errors.ts";
import { assertShallow, DEPTH_HEADER, inCall, toScope } from "../src/net/call-scope.ts";
import { makeClientAddress } from "../src/net/client-address.ts";
import type { Platform } from "../src/platform.ts";
import { requireUnlimited, rootOf, type WidgetScope } from "../src/tenancy/roles.ts";
import { type ApiContext, type RequestState, sendReply } from "./context.ts";
import { makeKeepFile } from "./keep-file.ts";
import { anonymous, authenticate } from "./middleware/authenticate.ts";
import { type BodyBudget, makeBodyBudget, makeUploadRate } from "./middleware/body-budget.ts";
import { toAppError, tooManyWait } from "./middleware/errors.ts";
import { respondIdempotently } from "./middleware/idempotency.ts";
import { admitOperator } from "./middleware/operator.ts";
import type { TakeTurn } from "./middleware/rate-limit.ts";
import { admit } from "./middleware/rate-limit.ts";
import { rejectForeignHost } from "./middleware/same-origin.ts";
import {
  admitWidget,
  hideFromPage,
  MAX_WIDGET_BYTES,
  requireKnownFields,
  respondToPreflight,
  showToPage,
} from "./middleware/widget-access.ts";
import { type Input, type InputReader, makeInputReader, noteIgnored } from "./read-input.ts";
import { makeReadTurns, type ReadTurns } from "./read-turns.ts";
import {
  type AnyRoute,
  type HandlerInput,
  isForTenants,
  isStreamed,
  type JsonReply,
  type Reply,
  type RouteDialect,
  takesIdempotencyKey,
} from "./route.ts";
import { anthropicDialect } from "./routes/anthropic/errors.ts";
import type { UnprovenConnections } from "./unproven-connections.ts";
import { writeReply } from "./write-reply.ts";

/** Memory for large bodies in one process, in bytes; at least two of the largest always fit. */
const LARGE_BODIES_BYTES = 256 << 20;
/** One tenant takes at most a quarter of it, but always one body at a time. */
const TENANT_PART = 4;
/** Most that is read of a caller over its rate, in bytes. */
const MAX_REFUSED_BYTES = 16 << 10;

/** Makes the function that names a request's client; it warns once if a proxy forwards requests and none is trusted. */
function makeClientOf({ config, logger }: Pick<Platform, "config" | "logger">): (ctx: ApiContext) => string {
  const { trustedProxies } = config.http;
  const findClient = makeClientAddress(trustedProxies);
  let isWarned = trustedProxies.length > 0;
  return (ctx) => {
    const forwardedFor = ctx.get("x-forwarded-for");
    if (!isWarned && forwardedFor !== "") {
      isWarned = true;
      const why = "limits by address count everybody behind the proxy as one client";
      logger.warn(`a request has X-Forwarded-For, but TRUSTED_PROXIES is not set: ${why}`);
    }
    return findClient({ remoteAddress: ctx.req.socket.remoteAddress, forwardedFor });
  };
}

/**
 * Serves the declared routes. Those with fixed paths must be declared before those with parameters that they would match.
 * A fixed path is looked up; only for the others the router tries one pattern after the other.
 */
export function mountRoutes(
  app: Koa<RequestState>,
  platform: Platform,
  {
    routes,
    ...deps
  }: {
    routes: readonly AnyRoute[];
    stopping: AbortSignal;
    takeTurn: TakeTurn;
    connections: Pick<UnprovenConnections, "prove">;
  },
): void {
  const router = new Router<RequestState>();
  const fixed = new Map<string, (ctx: ApiContext) => Promise<void>>();
  const { limits } = platform.config;
  const totalBytes = Math.max(LARGE_BODIES_BYTES, 2 * limits.sourceBytes);
  const { presence } = platform;
  const takeUpload = makeUploadRate({
    bytesPerSecond: limits.uploadBytesPerSecond,
    requestsPerMinute: limits.requestsPerMinute,
    hasOthers: presence.hasOthers,
  });
  const budget = makeBodyBudget({ totalBytes, tenantBytes: totalBytes / TENANT_PART, takeUpload });
  const clientOf = makeClientOf(platform);
  const turns = makeReadTurns(presence);
  for (const route of routes) {
    const serve = serveRoute(platform, route, { ...deps, budget, presence, turns, clientOf });
    router[route.method](route.path, serve);
    if (!route.path.includes(":")) fixed.set(`${route.method.toUpperCase()} ${route.path}`, serve);
  }
  app.use(function serveFixedPath(ctx, next) {
    const serve = fixed.get(`${ctx.method} ${ctx.path}`);
    return serve ? serve(ctx) : next();
  });
  app.use(router.routes());
  const widgetPaths = new Set(routes.filter((route) => route.isForWidgets).map((route) => route.path));
  app.use(respondToUnrouted(router, widgetPaths));
}

/** Everything between the router and a handler, the caller, the limits and the parsed input, and then the reply. */
function serveRoute(
  platform: Platform,
  route: AnyRoute,
  {
    budget,
    presence,
    turns,
    clientOf,
    stopping,
    takeTurn,
    connections,
  }: {
    budget: BodyBudget;
    presence: Presence;
    turns: ReadTurns;
    clientOf(ctx: ApiContext): string;
    stopping: AbortSignal;
    takeTurn: TakeTurn;
    connections: Pick<UnprovenConnections, "prove">;
  },
): (ctx: ApiContext) => Promise<void> {
  const keepFileOf = (ctx: ApiContext) => makeKeepFile(ctx, platform, route);
  const read = makeInputReader(platform.config.limits, route, { ...budget, keepFileOf });
  const isSecret = route.hasSecretReply === true;
  const { allowedHosts } = platform.config.http;
  const door = isForTenants(route.auth) ? { tenancy: platform.tenancy, needed: route.auth, allowedHosts } : undefined;
  return (ctx) => {
    const scope = toScope(ctx.state.requestId, ctx.get(DEPTH_HEADER));
    const onRefused = (counts: readonly GuardCount[]) => tellRefused(platform, ctx, counts);
    return inCall({ ...scope, onFound: (found) => nameFound(ctx, found), onRefused }, () => serve(ctx));
  };
  async function serve(ctx: ApiContext): Promise<void> {
    ctx.state.route = route.path;
    if (route.auth === "public" && route.isProbe !== true && !(await takeTurn())) throw tooManyWait();
    if (route.isWatch) ctx.state.signal = AbortSignal.any([ctx.state.signal, stopping]);
    const dialect = route.dialectOf?.((name) => ctx.get(name) || undefined) ?? route.dialect;
    if (dialect) speak(ctx, dialect);
    else if (isForAnthropic(ctx) && route.dialectOf === undefined) throw nothingAt(ctx, anthropicDialect);
    if (route.auth !== "public") assertShallow();
    if (route.envelope) rejectForeignHost(ctx, allowedHosts);
    const client = () => clientOf(ctx);
    if (route.auth === "operator") await admitOperator(ctx, { operator: platform.operator, allowedHosts, client });
    if (route.isForWidgets) showToPage(ctx);
    const caller = door === undefined ? anonymous : await authenticate(ctx, door, client);
    let rejection: AppError | undefined;
    if (door !== undefined) {
      if (caller.widget) admitWidget(ctx, caller.widget, route.isForWidgets === true);
      else if (route.isForWidgets) hideFromPage(ctx);
      if (route.isForAllCollections) requireUnlimited(caller);
      const admitting = admit(ctx, platform.tenancy, { caller, client });
      if (route.envelope) rejection = await rejectionOf(admitting);
      else await admitting;
      if (rejection === undefined) connections.prove(ctx.req.socket);
      presence.begins(rootOf(caller));
    }
    const reader = { tenant: rootOf(caller), path: route.path };
    const inTurn = turns.of(reader.tenant, ctx.state.signal);
    const writing = { platform, budget, inTurn };
    const parsed = await readOrReply(ctx, route, { read, rejection, widget: caller.widget });
    if ("status" in parsed) return writeReply(ctx, parsed, writing);
    const input: HandlerInput = {
      ...parsed,
      caller,
      signal: ctx.state.signal,
      platform,
      requestId: ctx.state.requestId,
      path: ctx.path,
      header: (name) => ctx.get(name) || undefined,
      ignore: (name) => ignoreOnce(ctx, name),
      reserve: (bytes) => budget.reserve(ctx, bytes),
      inTurn,
      checkpoint: async () => undefined,
      ...(rejection && { rejection }),
    };
    if (route.isOfOwn) await platform.responses.requireOwn(caller, { [route.isOfOwn]: [ctx.params.id] });
    if (route.screen) await turns.screen(reader.tenant, input, route);
    // The declaration's own schemas made the input, so it has the types that the handler declared.
    const handle = async (input: HandlerInput) =>
      withIgnored(ctx, await route.handler(input as HandlerInput<never, never, never>));
    if (route.method === "get" && !route.isWatch && caller !== anonymous)
      return writeReply(ctx, await turns.handle(reader, input, handle), writing);
    // The keys of a page's visitors could collide with those of the tenant's own calls, and with each other.
    const key = takesIdempotencyKey(route, input.query) && !caller.widget ? ctx.get("idempotency-key") : "";
    const reply =
      key === "" ? await handle(input) : await respondIdempotently(platform, input, { key, isSecret, handle });
    await writeReply(ctx, reply, writing);
  }
}

function tellRefused({ guards }: Platform, { state: { caller } }: ApiContext, counts: readonly GuardCount[]): void {
  if (caller) guards.tellRefused(caller, counts);
}

function ignoreOnce(ctx: ApiContext, name: string): void {
  const isKnown = ctx.state.ignored?.some((one) => one.name === name);
  if (!isKnown) noteIgnored(ctx, [{ name, shown: name }]);
}

/** Names in `x-svc-guard` what guards have found by then: `card_number;place=input;action=mask;count=2`. */
function nameFound({ state }: ApiContext, found: readonly GuardCount[]): void {
  const show = ({ kind, place, action, count }: GuardCount) => `${kind};place=${place};action=${action};count=${count}`;
  state.headers["x-svc-guard"] = found.map(show).join(", ");
}

function speak({ state }: ApiContext, dialect: RouteDialect): void {
  state.dialect = dialect;
  state.headers[dialect.requestIdHeader] = state.requestId;
}

/** With `x-svc-debug: true` the ignored fields are named in the body too, where a JSON object has room for them. */
function withIgnored(ctx: ApiContext, reply: Reply): Reply {
  const _ignored = ctx.state.ignored?.map(({ name }) => name);
  if (_ignored === undefined || isStreamed(reply) || ctx.get("x-svc-debug") !== "true") return reply;
  const { body, text: _text, ...rest } = reply;
  if (typeof body !== "object" || body === null || Array.isArray(body)) return reply;
  return { ...rest, body: { ...body, _ignored } };
}

/** Why a request is not admitted; undefined when it is. */
async function rejectionOf(admitting: Promise<void>): Promise<AppError | undefined> {
  try {
    await admitting;
    return undefined;
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

/**
 * The input of a route, or its envelope's reply when the input cannot be read. From a caller that is refused only a small
 * body is read, for the ids in it, and none without a place among the concurrent requests.
 */
async function readOrReply(
  ctx: ApiContext,
  route: AnyRoute,
  { read, rejection, widget }: { read: InputReader; rejection: AppError | undefined; widget: WidgetScope | undefined },
): Promise<Input | JsonReply> {
  try {
    if (rejection?.code === "too_many_concurrent") throw rejection;
    const maxBytes = widget ? MAX_WIDGET_BYTES : Number.POSITIVE_INFINITY;
    const input = await read(ctx, rejection === undefined ? maxBytes : MAX_REFUSED_BYTES);
    if (widget) requireKnownFields(ctx, widget);
    return input;
  } catch (error) {
    const reply = route.envelope?.toReply(rejection ?? toAppError(error), ctx.state.requestId);
    if (reply === undefined) throw error;
    return reply;
  }
}

/** Whether a request is by a client of Anthropic, some of whose paths OpenAI's API has too. */
const isForAnthropic = (ctx: ApiContext) =>
  ctx.path.startsWith("/v1/") && (ctx.get("anthropic-version") !== "" || ctx.path.startsWith("/v1/messages"));

/** The error of an unknown path, in the shape that its caller knows. */
function nothingAt(ctx: ApiContext, dialect?: RouteDialect, router?: Router<RequestState>): AppError {
  if (dialect) speak(ctx, dialect);
  const withVersion = `/v1${ctx.path}`;
  const isKnown = router !== undefined && router.match(withVersion, ctx.method).path.length > 0;
  const hint = isKnown ? ` It is ${withVersion}: set the base URL of your client to the address with /v1.` : "";
  return new AppError("not_found", `There is nothing at ${ctx.path.slice(0, 200)}.${hint}`);
}

/** Replies to what no route took: 204 with `Allow` for OPTIONS, 405 for a known path, 404 for any other. */
function respondToUnrouted(router: Router<RequestState>, widgetPaths: ReadonlySet<string>) {
  return function respondToUnroutedRequest(ctx: ApiContext): void {
    const layers = router.match(ctx.path, ctx.method).path;
    const allowed = [...new Set(layers.flatMap((layer) => layer.methods))];
    const dialect = isForAnthropic(ctx) ? anthropicDialect : undefined;
    if (allowed.length === 0) throw nothingAt(ctx, dialect, router);
    if (dialect) speak(ctx, dialect);
    if (ctx.method === "OPTIONS" && ctx.get("origin") !== "" && widgetPaths.has(ctx.path)) {
      respondToPreflight(ctx);
      return;
    }
    const allow = [...allowed, "OPTIONS"].join(", ");
    if (ctx.method !== "OPTIONS") {
      ctx.state.headers.allow = allow;
      throw new AppError("method_not_allowed", `${ctx.path} does not take ${ctx.method}.`, { details: { allowed } });
    }
    sendReply(ctx, { status: 204, headers: { allow } });
  };
}
