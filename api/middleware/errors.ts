import type { IncomingMessage } from "node:http";
import type { Middleware } from "koa";
import {
  AppError,
  type ErrorCode,
  type ErrorType,
  type ErrorView,
  toErrorView,
  unavailable,
} from "../../src/lib/errors.ts";
import type { Logger } from "../../src/observe/logger.ts";
import { toRedisError } from "../../src/store/redis/redis.ts";
import { toStoreError } from "../../src/store/store-errors.ts";
import { type ApiContext, type RequestState, sendReply } from "../context.ts";
import { baseUrlOf, challenge } from "../resource-url.ts";
import type { TakeTurn } from "./rate-limit.ts";

/** The only table from an error's type to its HTTP status. */
const statusOfType: Record<ErrorType, number> = {
  invalid_request_error: 400,
  authentication_error: 401,
  permission_error: 403,
  not_found_error: 404,
  conflict_error: 409,
  rate_limit_error: 429,
  quota_error: 413,
  compliance_error: 422,
  upstream_error: 502,
  server_error: 500,
};

/** Codes whose status is not that of their type. */
const statusOfCode: Partial<Record<ErrorCode, number>> = {
  budget_exhausted: 402,
  model_not_found: 404,
  method_not_allowed: 405,
  request_too_large: 413,
  unsupported_media_type: 415,
  source_unreadable: 422,
  source_incomplete: 422,
  source_unreachable: 422,
  cancelled: 409,
  client_closed: 499,
  provider_rate_limited: 429,
  provider_timeout: 504,
  timeout: 504,
  provider_key_unreadable: 503,
  unavailable: 503,
  store_read_only: 503,
  storage_full: 507,
};

/** When to retry, in ms, where the error itself does not say. */
const defaultRetryAfterMs: Partial<Record<number, number>> = { 429: 1_000, 503: 2_000, 507: 30_000 };

/** Where clients of other vendors call; those with a dialect of their own have it in the place of this. */
const OPENAI_PATHS = "/v1/";

/** Statuses with `Retry-After` (RFC 9110, 10.2.3); 502 passes on what a provider asked for. */
const retryAfterStatuses = new Set([429, 502, 503, 507]);

/** Errors of calls that lead nowhere, or have no valid key. */
const codesOfAnybody: ReadonlySet<ErrorCode> = new Set([
  "not_found",
  "method_not_allowed",
  "missing_api_key",
  "invalid_api_key",
]);

/** The HTTP status of an error code. */
export function toStatus(error: { code: ErrorCode; type: ErrorType }): number {
  return statusOfCode[error.code] ?? statusOfType[error.type];
}

/** System errors of a connection to a part of ours; those to providers and sources are wrapped where they happen. */
const lostConnectionCodes = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ENOENT",
  "ENOTFOUND",
  "EAI_AGAIN",
]);

/** Any thrown value as an error of the domain. An unknown one becomes `internal`, without its message. */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  const ofPart = toStoreError(error) ?? toRedisError(error);
  if (ofPart) return ofPart;
  const { syscall, code } = Object(error) as NodeJS.ErrnoException; // as far as it is one
  if (syscall !== undefined && lostConnectionCodes.has(String(code)))
    return unavailable("A part of the service", error);
  return new AppError("internal", toErrorView(error).message, { cause: error });
}

/** The body of an error response. */
export function toErrorBody(error: AppError, requestId: string): { error: ErrorView & { requestId: string } } {
  return { error: { ...toErrorView(error), requestId } };
}

/** Responds to what the rest of the chain throws, in the one error shape, and logs it by its class. */
export function respondToErrors(options: {
  logger: Logger;
  publicUrl: string | undefined;
  takeTurn: TakeTurn;
}): Middleware<RequestState> {
  const { logger, publicUrl, takeTurn } = options;
  const discard = makeDiscard();
  return async function respondToThrownErrors(ctx, next) {
    try {
      await next();
    } catch (thrown) {
      let error = toAppError(thrown);
      if (!ctx.req.complete) discard(ctx.req);
      if (isOfAnybody(error, ctx) && !(await takeTurn())) error = tooManyWait();
      logError(logger, error, ctx);
      if (!ctx.res.headersSent) writeError(ctx, error, publicUrl);
      else ctx.res.destroy();
    }
  };
}

/** Whether the error is one that anybody can cause, as often as they like: no tenant's rate counts the call. */
function isOfAnybody({ code }: AppError, { state }: ApiContext): boolean {
  return state.caller === undefined && codesOfAnybody.has(code);
}

/** For a call of anybody that has no room to wait in. */
export function tooManyWait(): AppError {
  const message = "Too many calls without a valid key; wait before the next one.";
  return new AppError("rate_limited", message, { retryable: true, retryAfterMs: 1_000 });
}

/** Logs what concerns the operator: our own failures with their cause, missing parts as warnings; never a caller's mistake. */
export function logError(logger: Logger, error: AppError, ctx: ApiContext): void {
  ctx.state.errorCode = error.code;
  const fields = { requestId: ctx.state.requestId, code: error.code };
  if (ctx.state.signal.aborted || error.code === "client_closed") logger.info(fields, "the client went away");
  else if (error.code === "internal") logger.error({ ...fields, err: error.cause ?? error }, "request failed");
  else if (toStatus(error) >= 500) logger.warn({ ...fields, err: error }, "request failed");
}

function writeError(ctx: ApiContext, error: AppError, publicUrl: string | undefined): void {
  if (ctx.state.signal.aborted) {
    ctx.respond = false;
    return;
  }
  const status = toStatus(error);
  const headers: Record<string, string> = {};
  const retryAfterMs = error.retryAfterMs ?? defaultRetryAfterMs[status];
  if (retryAfterMs !== undefined && retryAfterStatuses.has(status)) {
    headers["retry-after"] = String(Math.max(1, Math.ceil(retryAfterMs / 1_000)));
  }
  // The work was accepted as a job, which has attempts of its own: OpenAI's and Anthropic's clients would begin it again.
  if (Object(error.details).jobId !== undefined) headers["x-should-retry"] = "false";
  if (status === 401) headers["www-authenticate"] = challenge(baseUrlOf(publicUrl, ctx.req.headers.host), ctx.path);
  const { dialect, requestId } = ctx.state;
  const own = { status: status === 499 ? 500 : status, body: toErrorBody(error, requestId) }; // 499 is for the log; no client reads it
  if (error.code === "unknown_model" && ctx.path.startsWith(OPENAI_PATHS)) {
    // What OpenAI's clients know such a model by.
    const body = { error: { ...own.body.error, code: "model_not_found" } };
    Object.assign(own, { status: 404, body });
  }
  sendReply(ctx, { ...(dialect?.toError(toErrorView(error), requestId, error.cause) ?? own), headers });
}

/** What of a refused body is taken at once: with what the network holds, a small body as a whole. In bytes. */
const AT_ONCE_BYTES = 256 << 10;
/** Chunks, of 64 KiB mostly, that are then taken in each turn of all such bodies together: 5 MiB a second. */
const CHUNKS_A_TURN = 4;
const TURN_MS = 50;

/**
 * Takes the rest of refused bodies, since many clients read the response only when they have sent theirs. It is discarded at
 * a pace that costs little, however many there are: at full speed, refused uploads would cost as much as others.
 */
export function makeDiscard({ turnMs = TURN_MS } = {}): (request: IncomingMessage) => void {
  const paused = new Set<IncomingMessage>();
  let turns: NodeJS.Timeout | undefined;
  const takeTurn = () => {
    for (const request of [...paused].slice(0, CHUNKS_A_TURN)) {
      paused.delete(request); // its next chunk puts it behind the others
      request.resume();
    }
    if (paused.size > 0) return;
    clearInterval(turns);
    turns = undefined;
  };
  return function discard(request) {
    let atOnce = AT_ONCE_BYTES;
    request.on("data", (chunk: Buffer) => {
      atOnce -= chunk.length;
      if (atOnce > 0) return;
      request.pause();
      paused.add(request);
      turns ??= setInterval(takeTurn, turnMs).unref();
    });
    request.once("close", () => paused.delete(request));
    request.read(0); // it is being read from now on: otherwise Node takes the rest itself, as fast as it comes
    request.resume();
  };
}
