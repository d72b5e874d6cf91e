import { createHash, createHmac, pbkdf2Sync, randomBytes, timingSafeEqual } from "node:crypto";
import { Binary } from "bson";
import type { Document } from "../bson/bson-types.ts";
import { type ErrorName, errorCodes } from "../command-error.ts";

/**
 * SCRAM-SHA-256, by which a client and this server prove to each other that they know the password, without showing it to
 * a party that does not. https://www.rfc-editor.org/rfc/rfc5802 and https://www.rfc-editor.org/rfc/rfc7677
 */
export const scramMechanism = "SCRAM-SHA-256";
export const scramUser = "switchyard";
/** The least that drivers take. The password is 256 random bits, which more rounds would not make harder to guess. */
export const scramRounds = 4_096;
/** Of the nonces, in bytes. */
const NONCE_BYTES = 24;

export type ScramKeys = { salt: Buffer; clientKey: Buffer; storedKey: Buffer; serverKey: Buffer };

/** Takes about 2 ms of the processor. */
export function deriveScramKeys(password: string, salt: Buffer): ScramKeys {
  const salted = pbkdf2Sync(password, salt, scramRounds, 32, "sha256");
  const clientKey = hmac(salted, "Client Key");
  const storedKey = createHash("sha256").update(clientKey).digest();
  return { salt, clientKey, storedKey, serverKey: hmac(salted, "Server Key") };
}

export function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

export function makeNonce(): string {
  return randomBytes(NONCE_BYTES).toString("base64");
}

export function xor(left: Buffer, right: Buffer): Buffer {
  return Buffer.from(left.map((byte, at) => byte ^ (right[at] ?? 0)));
}

/** Compares in a time that does not depend on the bytes. */
export function isSame(left: Buffer, right: Buffer): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}

/** The attributes of a message, as `r=nonce,s=salt`, by their letters. */
export function readScramMessage(text: string): Record<string, string> {
  return Object.fromEntries(text.split(",").map((part) => [part.slice(0, 1), part.slice(2)]));
}

/** The text of a command's or an answer's `payload`; "" when it has none. */
export function payloadText({ payload }: Document): string {
  return payload instanceof Binary ? Buffer.from(payload.value()).toString("utf8") : "";
}

/** What stands before the commands of one connection: answers those of the exchange, and refuses others until it is through. */
export type Gate = (body: Document) => Document | undefined;

/** Commands that a client may run before it has proved itself: they show nothing of the data. */
const openCommands: ReadonlySet<string> = new Set(["hello", "isMaster", "ismaster", "ping", "buildInfo", "buildinfo"]);

/** Makes the gate of each new connection. */
export function makeGates(password: string): () => Gate {
  // From the password, so that it stays the same and clients need not derive their keys again.
  const keys = deriveScramKeys(password, hmac(Buffer.from(password), "salt").subarray(0, 16));
  return () => {
    let isOpen = false;
    let exchange: Exchange | undefined;
    return (body) => {
      if (isOpen) return undefined;
      const name = Object.keys(body)[0] ?? "";
      if (name === "saslStart") {
        exchange = startExchange(keys, body);
        if (exchange === undefined) return failure("AuthenticationFailed", "Authentication failed.");
        return { conversationId: 1, done: false, payload: toPayload(exchange.serverFirst), ok: 1 };
      }
      if (name === "saslContinue") {
        const signature = exchange && endExchange(keys, exchange, body);
        exchange = undefined;
        if (signature === undefined) return failure("AuthenticationFailed", "Authentication failed.");
        isOpen = true;
        return { conversationId: 1, done: true, payload: toPayload(`v=${signature.toString("base64")}`), ok: 1 };
      }
      if (openCommands.has(name)) return undefined;
      return failure("Unauthorized", `Command ${name} requires authentication`);
    };
  };
}

type Exchange = { clientFirst: string; serverFirst: string; nonce: string };

function startExchange(keys: ScramKeys, body: Document): Exchange | undefined {
  const text = payloadText(body);
  const clientFirst = text.slice(3);
  const { n: user, r: clientNonce } = readScramMessage(clientFirst);
  if (body.mechanism !== scramMechanism || !text.startsWith("n,,") || user !== scramUser || !clientNonce)
    return undefined;
  const nonce = `${clientNonce}${makeNonce()}`;
  return { clientFirst, serverFirst: `r=${nonce},s=${keys.salt.toString("base64")},i=${scramRounds}`, nonce };
}

/** The server's signature for a client that has proved itself. */
function endExchange(keys: ScramKeys, { clientFirst, serverFirst, nonce }: Exchange, body: Document) {
  const text = payloadText(body);
  const { c: binding, r: nonceAgain, p: proof = "" } = readScramMessage(text);
  if (binding !== "biws" || nonceAgain !== nonce) return undefined; // biws: base64 of "n,,"
  const all = `${clientFirst},${serverFirst},${text.slice(0, text.lastIndexOf(",p="))}`;
  const clientKey = xor(hmac(keys.storedKey, all), Buffer.from(proof, "base64"));
  const isProved = isSame(createHash("sha256").update(clientKey).digest(), keys.storedKey);
  return isProved ? hmac(keys.serverKey, all) : undefined;
}

export function toPayload(text: string): Binary {
  return new Binary(Buffer.from(text));
}

function failure(codeName: ErrorName, errmsg: string): Document {
  return { ok: 0, errmsg, code: errorCodes[codeName], codeName };
}
