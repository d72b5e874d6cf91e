import type { IncomingHttpHeaders } from "node:http";
import type { z } from "zod";
import { defined } from "../../lib/defined.ts";
import { AppError } from "../../lib/errors.ts";
import { tryParseJson } from "../../lib/try-parse-json.ts";
import { providerFault } from "../resilience/transport-errors.ts";
import { type ProviderSays, readProblem, readReported, statusOfProblem } from "./reported-errors.ts";

/** An answer that is not 2xx to a request that came in the provider's wire format: its sender can read it as it is. */
export class WireRefusal extends Error {
  override name = "WireRefusal";
  readonly status: number;
  readonly body: string;

  constructor(status: number, body: string) {
    super(`The provider answered with status ${status}.`);
    this.status = status;
    this.body = body;
  }
}

/** OpenAI's code of an account that has used up its money: waiting does not help. */
const NO_QUOTA = "insufficient_quota";

/** Statuses that refuse a key or a model, but not the request; 402: no money is left. */
const accessRefusals: ReadonlySet<number> = new Set([401, 402, 403, 404]);

/** Statuses of a request that its sender has to change; the other 4xx concern a key, a model or the time. */
const callersFaults: ReadonlySet<number> = new Set([400, 413, 422]);
/** Anthropic's 400 for an account without money: the request is not at fault. */
const noMoney = /credit balance is too low/i;

/**
 * A 400 for reasoning that came back and cannot be read: OpenAI's code (or words, where a server has none), and Anthropic's
 * words. A provider may bind it to a model or an account.
 */
const UNREADABLE_CODE = "invalid_encrypted_content";
const unreadable =
  /encrypted content\b.{0,200}\bcould not be (?:verified|decrypted)|invalid `?signature`? in `?thinking/i;

/** Statuses after which the same request may succeed (the providers' own clients retry the same ones). */
const isRetryableStatus = (status: number) => status === 408 || status === 409 || status === 429 || status >= 500;

/**
 * The error of an answer that is not 2xx. Its details hold the upstream status and code, and what the provider says of it as
 * `provider`; never headers, and never the message of a 401, which can quote a part of the key.
 */
export function fromWireError(status: number, headers: IncomingHttpHeaders, body: string, now = Date.now()): AppError {
  return toWireError(status, readProblem(body), headers, now);
}

function toWireError(
  status: number,
  { code, message }: ProviderSays,
  headers: IncomingHttpHeaders = {},
  now = Date.now(),
): AppError {
  const details = defined({ status, code, provider: status === 401 ? undefined : message });
  const isUnpaid = message !== undefined && noMoney.test(message);
  const options = defined({
    details,
    reason: accessRefusals.has(status) || isUnpaid ? ("access_refused" as const) : undefined,
    retryable: isRetryableStatus(status) && code !== NO_QUOTA,
    retryAfterMs: readRetryAfter(headers, now),
  });
  if (status === 429)
    return new AppError("provider_rate_limited", "The provider limits the rate of requests.", options);
  if (status === 408 || status === 504) return new AppError("provider_timeout", "The provider timed out.", options);
  if (status === 401) return new AppError("provider_key_refused", "The provider refused the key.", options);
  if (status === 403) return new AppError("provider_failed", "The provider forbids this to the key.", options);
  const withMessage = { ...options, details: defined({ ...details, message }) };
  if (callersFaults.has(status) && !isUnpaid) {
    const isUnreadable = code === UNREADABLE_CODE || (message !== undefined && unreadable.test(message));
    const rejected = isUnreadable ? { ...withMessage, reason: "reasoning_unreadable" as const } : withMessage;
    return new AppError("provider_rejected", `The provider rejected the request: ${message ?? status}`, rejected);
  }
  if (status >= 400 && status < 500 && message !== undefined) {
    return new AppError("provider_failed", "The provider refused the request.", withMessage);
  }
  return new AppError("provider_failed", `The provider failed with status ${status}.`, options);
}

/** The error of an item of a batch, whose status the provider does not report. */
export function fromItemError(error: unknown): AppError {
  const problem = readReported(error) ?? {};
  return toWireError(statusOfProblem(problem) ?? 500, problem);
}

const MALFORMED = "malformed_answer";

/** The error of an answer or chunk that does not hold what the wire format promises. */
export function malformed(what: string, cause?: unknown): AppError {
  return providerFault(`The provider sent ${what}.`, { code: MALFORMED }, cause);
}

/**
 * The error that a server reports in an answer whose status is 200. Where it says of which status it is, it is that error: a
 * 4xx is not worth another attempt, and a 429 is after a wait.
 */
export function fromReportedError(error: unknown, headers: IncomingHttpHeaders = {}): AppError {
  return toReported(readReported({ error }) ?? {}, headers);
}

function toReported(problem: ProviderSays, headers: IncomingHttpHeaders): AppError {
  const status = statusOfProblem(problem);
  if (status !== undefined) return toWireError(status, problem, headers);
  const { code = "stream_error", message: provider } = problem;
  return providerFault("The provider reported an error in the middle of its answer.", defined({ code, provider }));
}

/** Reads a body whose status is 200. @throws AppError what it reports in the place of an answer; what `read` throws else. */
export function readAnswer<T>(read: (body: string) => T, body: string, headers: IncomingHttpHeaders): T {
  try {
    return read(body);
  } catch (error) {
    const problem = error instanceof AppError && isMalformed(error) ? readReported(tryParseJson(body)) : undefined;
    throw problem === undefined ? error : toReported(problem, headers);
  }
}

const isMalformed = ({ details }: AppError) => Object(details).code === MALFORMED;

/** The same error without a key that its provider quotes. What looks like one, or like a part of this one, goes too. */
export function withoutKey(error: unknown, apiKey: string | undefined): unknown {
  const said = error instanceof AppError ? Object(error.details).provider : undefined;
  if (!(error instanceof AppError) || typeof said !== "string") return error;
  const masked = maskKeys(said, apiKey);
  if (masked === said) return error;
  const { code, message, details, param, reason, retryable, retryAfterMs, cause } = error;
  const shown = { ...Object(details), provider: masked };
  if (typeof shown.message === "string") shown.message = maskKeys(shown.message, apiKey);
  return new AppError(code, maskKeys(message, apiKey), {
    details: shown,
    reason,
    retryable,
    cause,
    ...defined({ param, retryAfterMs }),
  });
}

/** A shorter key, as servers take that want any, is no secret, and would be hidden in the middle of words. */
const SHORTEST_HIDDEN = 8;

/** A text of a provider without the key that it was sent. */
export const hideKey = (text: string, apiKey: string | undefined): string =>
  apiKey === undefined || apiKey.length < SHORTEST_HIDDEN ? text : text.replaceAll(apiKey, "[key]");

/** Words that hold secrets: with a known beginning of keys, or with stars in the place of what was left out. */
const keyLike = /(?:\b(?:sk|pk|rk|gsk|xai|nvapi|hf|key|AIza)[-_]?(?=[\w*.-]*[\d*])[\w*.-]{8,})|[\w.-]*\*{2,}[\w*.-]*/g;
/** Characters of a key's beginning or end by which a word is known as a part of it. */
const PART_OF_KEY = 6;

function maskKeys(text: string, apiKey: string | undefined): string {
  const masked = text.replace(keyLike, "[key]");
  if (apiKey === undefined || apiKey.length < 2 * PART_OF_KEY) return masked;
  const parts = [apiKey.slice(0, PART_OF_KEY), apiKey.slice(-PART_OF_KEY)];
  return masked.replace(/[^\s"'`]{6,}/g, (word) => (parts.some((part) => word.includes(part)) ? "[key]" : word));
}

/** Longest text of an answer that an error has with it, in characters. */
const MAX_TEXT = 20_000;

/** The error of an answer that its provider could not finish. What had come of it is `details.text`. */
export function endedInError({ text }: { text?: string }, error?: unknown): AppError {
  const reported = error ? fromReportedError(error) : undefined;
  const { message = "The provider could not finish its answer.", code = "provider_failed" } = reported ?? {};
  const said = text?.slice(0, MAX_TEXT).toWellFormed();
  const details = defined({ code: "finish_error", ...Object(reported?.details), text: said });
  const { retryable = true, retryAfterMs, reason } = reported ?? {};
  return new AppError(code, message, { details, reason, retryable, ...defined({ retryAfterMs }) });
}

/** `retry-after-ms` (OpenAI, Azure), else `Retry-After` in seconds or as a date (RFC 9110, 10.2.3); in ms. */
export function readRetryAfter(headers: IncomingHttpHeaders, now: number): number | undefined {
  const ms = headers["retry-after-ms"];
  if (typeof ms === "string" && /^\d+$/.test(ms)) return Number(ms);
  const text = headers["retry-after"];
  if (typeof text !== "string") return undefined;
  if (/^\d+(\.\d+)?$/.test(text)) return Math.ceil(Number(text) * 1_000);
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** @throws AppError `provider_failed` for what is not of the schema; its cause quotes nothing of the answer's text. */
export function parseWire<T>(schema: z.ZodType<T>, text: string, what: string): T {
  const json = tryParseJson(text);
  if (json === undefined) throw malformed("an answer that is not JSON");
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  throw malformed(`an answer that ${what}`, parsed.error);
}
