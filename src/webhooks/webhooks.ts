import { Webhook } from "standardwebhooks";
import { defined } from "../lib/defined.ts";
import { AppError } from "../lib/errors.ts";
import { tryParseKeepingDigits } from "../lib/exact-json.ts";
import { type Egress, readPrefix } from "../net/egress.ts";
import { asFetchError } from "../net/fetch-errors.ts";
import { makeWebhookSecrets, type WebhookSecrets } from "./secrets.ts";

/** Longest wait for a response and its body, in ms. */
const TIMEOUT_MS = 30_000;
/** Bytes of a response's body that are read. */
const MAX_BODY_BYTES = 64 << 10;
/** Headers of a response that are reported, and characters of each. */
const MAX_HEADERS = 50;
const MAX_HEADER_LENGTH = 1_000;
/** Longest wait that a receiver can ask for, in ms. */
const MAX_RETRY_AFTER_MS = 600_000;

/** A message to a tenant's own server. Its id is the same at every attempt, so that a receiver recognises a repeat. */
type Delivery = {
  id: string;
  url: string;
  method: string;
  body?: unknown;
  signal: AbortSignal;
  /** The longest wait for the response and its body, in ms; default 30 s. */
  timeoutMs?: number;
};
/** The response. `body` is a JSON value where the response is JSON, else text. */
type Delivered = { status: number; headers: Record<string, string>; body: unknown };

export type Webhooks = ReturnType<typeof makeWebhooks>;

/** Messages to tenants' servers, signed by the Standard Webhooks specification (https://www.standardwebhooks.com). */
export function makeWebhooks(deps: Parameters<typeof makeWebhookSecrets>[0] & { egress: Egress }) {
  const secrets = makeWebhookSecrets(deps);
  return {
    secrets,
    /**
     * Sends one message, once; GET has no body. @throws AppError `source_refused`, `webhook_failed` (the response is no 2xx),
     * `source_unreachable`, each with whether another attempt can help; the signal's reason.
     */
    async deliver(
      tenantId: string,
      { id, url, method, body, signal, timeoutMs = TIMEOUT_MS }: Delivery,
    ): Promise<Delivered> {
      const text = method === "GET" || body === undefined ? "" : JSON.stringify(body);
      const headers = {
        accept: "application/json, text/*;q=0.9, */*;q=0.1",
        ...(text === "" ? {} : { "content-type": "application/json" }),
        ...toSignedHeaders(await secrets.find(tenantId), id, text),
        "idempotency-key": id,
        "user-agent": "Switchyard-Webhooks/1",
      };
      const inTime = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      try {
        const request = { method, headers, signal: inTime, ...(text === "" ? {} : { body: text }) };
        const response = await deps.egress.fetch(url, request);
        const delivered = await toDelivered(response, url);
        if (response.ok) return delivered;
        throw toFailure(response, delivered, new URL(url).host);
      } catch (error) {
        signal.throwIfAborted();
        if (!inTime.aborted) throw asRetryable(error);
        const message = `${new URL(url).host} did not answer within ${timeoutMs} ms.`;
        throw new AppError("source_unreachable", message, { retryable: true });
      }
    },
  };
}

/** One signature for each secret, the current one's first, so that receivers can switch secrets without losing messages. */
function toSignedHeaders({ current, previous }: WebhookSecrets, id: string, text: string): Record<string, string> {
  const now = new Date();
  const secrets = previous === undefined ? [current] : [current, previous.secret];
  const signatures = secrets.map((secret) => new Webhook(secret).sign(id, now, text));
  return {
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(now.getTime() / 1_000)),
    "webhook-signature": signatures.join(" "),
  };
}

async function toDelivered(response: Response, url: string): Promise<Delivered> {
  // A cookie is a secret of the receiver's, and is never sent back.
  const entries = [...response.headers].filter(([name]) => name !== "set-cookie").slice(0, MAX_HEADERS);
  const headers = Object.fromEntries(entries.map(([name, value]) => [name, value.slice(0, MAX_HEADER_LENGTH)]));
  const text = await readBody(response, url);
  return { status: response.status, headers, body: toBody(text, response.headers.get("content-type") ?? "") };
}

/** The first part of a body: a workflow needs no more of it. */
async function readBody(response: Response, url: string): Promise<string> {
  try {
    const { text } = await readPrefix(response, MAX_BODY_BYTES);
    return text.toWellFormed();
  } catch (error) {
    throw asFetchError(error, { url, timeoutMs: TIMEOUT_MS });
  }
}

/** A body whose type is JSON but that is invalid, or was cut, stays text. Numbers keep their digits. */
function toBody(text: string, type: string): unknown {
  const value = /^application\/([\w.+-]+\+)?json\b/i.test(type) ? tryParseKeepingDigits(text) : undefined;
  return value === undefined ? text : value;
}

function toFailure({ status, headers }: Response, { body }: Delivered, host: string): AppError {
  const isTransient = status === 408 || status === 429 || status >= 500;
  const reason = headers.has("location") ? ": redirects are not followed" : "";
  const retryAfterMs = isTransient ? toRetryAfterMs(headers.get("retry-after")) : undefined;
  return new AppError("webhook_failed", `The receiver, ${host}, answered ${status}${reason}.`, {
    details: { status, body: typeof body === "string" ? body.slice(0, 500) : body },
    retryable: isTransient,
    ...defined({ retryAfterMs }),
  });
}

/** `Retry-After` (RFC 9110, 10.2.3) in ms: seconds, or a date. */
function toRetryAfterMs(header: string | null): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}

/** A receiver that cannot be reached now may be reachable later, unlike a forbidden address. */
function asRetryable(error: unknown): unknown {
  if (!(error instanceof AppError) || error.code !== "source_unreachable" || error.retryable) return error;
  return new AppError(error.code, error.message, { details: error.details, retryable: true, cause: error });
}
