import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import { defined } from "../../defined.ts";
import { AppError } from "../../errors.ts";
import { tryParseJson } from "../../try-parse-json.ts";
import { providerFault } from "../resilience/transport-errors.ts";

/** What OpenAI ("Error codes") and Anthropic ("Errors") send with a status that is not 2xx, and in a stream's error event. */
const wireError = z.object({
  error: z.union([
    z.string(),
    z.object({
      message: z.string().nullish(),
      type: z.string().nullish(),
      code: z.union([z.string(), z.number()]).nullish(),
    }),
  ]),
});

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
 * The error of an answer that is not 2xx. Its details hold the upstream status and code, and the upstream message for
 * faults of the request; never headers, and never the message of a 401 or 403, which can quote a part of the key.
 */
export function fromWireError(status: number, headers: IncomingHttpHeaders, body: string, now = Date.now()): AppError {
  const { code, message } = readWireError(body);
  const details = defined({ status, code });
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
  const body = JSON.stringify(error);
  return fromWireError(readWireError(body).code === "invalid_request_error" ? 400 : 500, {}, body);
}

/** The error of an answer or chunk that does not hold what the wire format promises. */
export function malformed(what: string, cause?: unknown): AppError {
  return providerFault(`The provider sent ${what}.`, { code: "malformed_answer" }, cause);
}

/** The error that a server reports inside a stream that it had begun with status 200. */
export function fromStreamError(error: unknown): AppError {
  const { code = "stream_error" } = readWireError(JSON.stringify({ error }));
  return providerFault("The provider reported an error in the middle of its answer.", { code });
}

function readWireError(body: string): { code?: string; message?: string } {
  const parsed = wireError.safeParse(tryParseJson(body));
  if (!parsed.success) return {}; // error pages of proxies are HTML: the status says all that we can know
  const { error } = parsed.data;
  if (typeof error === "string") return { message: error.slice(0, 500) };
  const code = error.code ?? error.type ?? undefined;
  return defined({
    code: code === undefined ? undefined : String(code).slice(0, 100),
    message: error.message?.slice(0, 500),
  });
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
