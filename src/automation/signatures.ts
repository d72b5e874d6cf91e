import { createHmac, timingSafeEqual } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { AppError } from "../lib/errors.ts";
import type { SourceKind } from "../store/event-store.ts";

/** How far a signed time may be from now, in seconds. */
const WINDOW_SECONDS = 300;

/** A request as it came. */
export type SignedRequest = { header(name: string): string | undefined; bytes: Buffer; body: unknown };

/** What a signed request says of its event. The id is covered by the signature: who replays it cannot change that. */
export type SignedEvent = { id: string; type?: string };

type Verify = (secret: string, request: SignedRequest, now: number) => SignedEvent;

/** @throws AppError `invalid_signature`, which does not say what is wrong. */
export function verifySignature(
  kind: SourceKind,
  secret: string,
  request: SignedRequest,
  now = Date.now(),
): SignedEvent {
  return verifiers[kind](secret, request, now);
}

const verifiers: Record<SourceKind, Verify> = {
  /** https://www.standardwebhooks.com: id, time and body are signed; a time of five minutes at most. */
  "standard-webhooks"(secret, { header, bytes, body }) {
    const names = ["webhook-id", "webhook-timestamp", "webhook-signature"] as const;
    const headers = Object.fromEntries(names.map((name) => [name, header(name) ?? ""]));
    try {
      new Webhook(secret).verify(bytes, headers);
    } catch (error) {
      throw refused(error);
    }
    return { id: headers["webhook-id"] ?? "", ...typeOf(Object(body).type) };
  },
  /** GitHub signs the body alone, and neither a time nor its delivery's id: the signature itself is what is taken once. */
  github(secret, { header, bytes }) {
    const signature = `sha256=${hmac(secret, bytes)}`;
    requireSame(header("x-hub-signature-256"), signature);
    return { id: signature, ...typeOf(header("x-github-event")) };
  },
  /** Slack signs the time and the body; its repeats have the id of the event and a time of their own. */
  slack(secret, { header, bytes, body }, now) {
    const time = header("x-slack-request-timestamp") ?? "";
    const isNear = /^\d{1,12}$/.test(time) && Math.abs(now / 1_000 - Number(time)) <= WINDOW_SECONDS;
    if (!isNear) throw refused();
    const signature = `v0=${hmac(secret, Buffer.concat([Buffer.from(`v0:${time}:`), bytes]))}`;
    requireSame(header("x-slack-signature"), signature);
    const { event_id: id, event, type } = Object(body);
    return { id: typeof id === "string" && id !== "" ? id : signature, ...typeOf(Object(event).type ?? type) };
  },
};

const hmac = (secret: string, bytes: Buffer) => createHmac("sha256", secret).update(bytes).digest("hex");

/** Compares in a time that does not depend on where the two differ. */
function requireSame(given: string | undefined, expected: string): void {
  const [a, b] = [Buffer.from(given ?? ""), Buffer.from(expected)];
  if (a.length !== b.length || !timingSafeEqual(a, b)) throw refused();
}

const MAX_TYPE = 200;
const typeOf = (type: unknown) => (typeof type === "string" && type !== "" ? { type: type.slice(0, MAX_TYPE) } : {});

const refused = (cause?: unknown) =>
  new AppError(
    "invalid_signature",
    "The request is not signed with the secret of this source, or was signed too long ago.",
    {
      cause,
    },
  );
