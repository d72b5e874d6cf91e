import { defined } from "./defined.ts";

/** The `type` field of an error body; one HTTP status class each (the table is in api/middleware/errors.ts). */
export const errorTypes = [
  "invalid_request_error",
  "authentication_error",
  "permission_error",
  "not_found_error",
  "conflict_error",
  "rate_limit_error",
  "quota_error",
  "compliance_error",
  "upstream_error",
  "server_error",
] as const;
export type ErrorType = (typeof errorTypes)[number];

/** Every code that a client can meet, with the type it belongs to. Codes are stable: clients switch on them. */
export const errorCodes = {
  invalid_request: "invalid_request_error",
  malformed_json: "invalid_request_error",
  request_too_large: "invalid_request_error",
  unsupported_media_type: "invalid_request_error",
  source_unreadable: "invalid_request_error",
  source_incomplete: "invalid_request_error",
  source_refused: "invalid_request_error",
  source_unreachable: "invalid_request_error",
  unknown_model: "invalid_request_error",
  /** The same to clients of OpenAI's paths. */
  model_not_found: "invalid_request_error",
  method_not_allowed: "invalid_request_error",
  call_too_deep: "invalid_request_error",
  missing_api_key: "authentication_error",
  invalid_api_key: "authentication_error",
  invalid_signature: "authentication_error",
  insufficient_role: "permission_error",
  insufficient_scope: "permission_error",
  foreign_origin: "permission_error",
  not_found: "not_found_error",
  wrong_state: "conflict_error",
  idempotency_key_reused: "conflict_error",
  idempotency_in_progress: "conflict_error",
  rate_limited: "rate_limit_error",
  too_many_concurrent: "rate_limit_error",
  budget_exhausted: "quota_error",
  quota_exceeded: "quota_error",
  compliance_blocked: "compliance_error",
  provider_rejected: "invalid_request_error",
  provider_failed: "upstream_error",
  response_format_mismatch: "upstream_error",
  answer_incomplete: "upstream_error",
  webhook_failed: "upstream_error",
  provider_timeout: "upstream_error",
  provider_rate_limited: "upstream_error",
  provider_not_configured: "invalid_request_error",
  provider_key_refused: "invalid_request_error",
  provider_key_unreadable: "server_error",
  unavailable: "server_error",
  storage_full: "server_error",
  store_read_only: "server_error",
  timeout: "server_error",
  cancelled: "server_error",
  client_closed: "server_error",
  internal: "server_error",
} as const satisfies Record<string, ErrorType>;
export type ErrorCode = keyof typeof errorCodes;

/** Why a provider's call failed: breaker open, no connection, no answer in time, its key or model refused, reasoning it cannot read. */
type ErrorReason = "breaker_open" | "unreachable" | "silent" | "access_refused" | "reasoning_unreadable";

export type AppErrorOptions = {
  /** Path of the offending field, as `messages[0].role`. */
  param?: string;
  /** Machine-readable particulars that are safe to show to the caller. */
  details?: unknown;
  /** For our own decisions; never shown to the caller. */
  reason?: ErrorReason | undefined;
  /** Whether the same call may succeed later. Jobs retry only these. */
  retryable?: boolean;
  /** How long to wait before the next try, in ms. */
  retryAfterMs?: number;
  cause?: unknown;
};

/**
 * The one error of the domain. It knows nothing of HTTP: `api/middleware/errors.ts` maps `code` and `type` to a status,
 * `workers/verdict.ts` maps `retryable` to what becomes of the job. Its message is always fit for the caller to read.
 */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly type: ErrorType;
  readonly param: string | undefined;
  readonly details: unknown;
  readonly reason: ErrorReason | undefined;
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "AppError";
    this.code = code;
    this.type = errorCodes[code];
    this.param = options.param;
    this.details = options.details;
    this.reason = options.reason;
    this.retryable = options.retryable ?? false;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** 404 for something that does not exist, or that belongs to another tenant. */
export function notFound(what: string): AppError {
  return new AppError("not_found", `There is no such ${what}.`);
}

/** 400 for a field that does not fit what else is known; `param` is its path. */
export function invalidRequest(param: string, message: string): AppError {
  return new AppError("invalid_request", message, { param });
}

/** The same error, where its caller knows the field by another name; also in the findings of a guard. */
export function renameField(error: AppError, rename: (field: string) => string): AppError {
  const { code, message, param, details, reason, retryable, retryAfterMs } = error;
  const own = param === undefined ? undefined : rename(param);
  if (param === undefined || own === undefined || own === param) return error;
  const { findings } = Object(details);
  const renamed = Array.isArray(findings) && findings.map((one) => ({ ...one, field: rename(one.field) }));
  const [head = "", ...parts] = message.split(param);
  const renamedMessage = parts.reduce((text, part) => `${text}${/^\w/.test(part) ? param : own}${part}`, head); // not within a word
  return new AppError(code, renamedMessage, {
    param: own,
    details: renamed ? { ...Object(details), findings: renamed } : details,
    reason,
    retryable,
    ...defined({ retryAfterMs }),
    cause: error,
  });
}

/** A needed part (store, Redis) does not answer; the caller may try again. */
export function unavailable(part: string, cause?: unknown): AppError {
  return new AppError("unavailable", `${part} is not available right now.`, {
    retryable: true,
    retryAfterMs: 2_000,
    cause,
  });
}

/** Whether `error` is the state of a needed part and says nothing about the call: the same call succeeds later. */
export function isOfPart({ code }: AppError): boolean {
  return code === "unavailable" || code === "storage_full" || code === "store_read_only";
}

/** Whether `error` says that a budget has no room for a call. */
export function isBudgetExhausted(error: unknown): error is AppError {
  return error instanceof AppError && error.code === "budget_exhausted";
}

/** Whether `error` says that a job or a run was cancelled; for an aborted signal, of its reason. */
export function isCancel(error: unknown): boolean {
  return error instanceof AppError && error.code === "cancelled";
}

/** The form in which an error is stored on a record and shown in a body: nothing but what the caller may see. */
export type ErrorView = { type: ErrorType; code: ErrorCode; message: string; param?: string; details?: unknown };

/** The error that a record keeps as `view`; `internal` with `message` where it keeps none. */
export function fromErrorView(view: ErrorView | undefined, message: string): AppError {
  if (!view) return new AppError("internal", message);
  const { code, message: kept, param, details } = view;
  return new AppError(code, kept, { details, ...defined({ param }) });
}

/** What a caller may see of `error`. Anything that is not an AppError becomes `internal`, without its message. */
export function toErrorView(error: unknown): ErrorView {
  if (!(error instanceof AppError)) {
    return { type: "server_error", code: "internal", message: "Something went wrong on our side." };
  }
  const { type, code, message, param, details } = error;
  return { type, code, message, ...defined({ param, details }) };
}

/** An error as logs keep it: without what a model had said when it came. */
export function withoutText(error: ErrorView): ErrorView {
  if (Object(error.details).text === undefined) return error;
  const { text: _text, ...details } = Object(error.details);
  return { ...error, details };
}

/** Thrown by work that stops for now and goes on later: no failure. */
export class Pause extends Error {}

/** A setting that is missing or wrong; the message names each variable and what is wrong with it. */
export class ConfigError extends Error {
  override name = "ConfigError";
}
