import { createHash, createHmac, pbkdf2Sync, randomBytes, timingSafeEqual } from "node:crypto";
import { connect, type Socket } from "node:net";
import { Binary } from "bson";
import type { Document } from "../bson/bson-types.ts";
import { encodeDocument } from "../bson/codec.ts";
import { type ErrorName, errorCodes } from "../command-error.ts";
import { frameReply, makeInbox, readRequest } from "./wire.ts";

/** SCRAM-SHA-256, of both sides: https://www.rfc-editor.org/rfc/rfc5802 and https://www.rfc-editor.org/rfc/rfc7677 */
export const scramMechanism = "SCRAM-SHA-256";
export const scramUser = "switchyard";
/** The least that drivers take. The password is 256 random bits, which more rounds would not make harder to guess. */
const scramRounds = 4_096;
/** Of the nonces, in bytes. */
const NONCE_BYTES = 24;

type ScramKeys = { salt: Buffer; clientKey: Buffer; storedKey: Buffer; serverKey: Buffer };

/** Takes about 2 ms of the processor. */
function deriveScramKeys(password: string, salt: Buffer): ScramKeys {
  const salted = pbkdf2Sync(password, salt, scramRounds, 32, "sha256");
  const clientKey = hmac(salted, "Client Key");
  const storedKey = createHash("sha256").update(clientKey).digest();
  return { salt, clientKey, storedKey, serverKey: hmac(salted, "Server Key") };
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

function makeNonce(): string {
  return randomBytes(NONCE_BYTES).toString("base64");
}

function xor(left: Buffer, right: Buffer): Buffer {
  return Buffer.from(left.map((byte, at) => byte ^ (right[at] ?? 0)));
}

/** Compares in a time that does not depend on the bytes. */
function isSame(left: Buffer, right: Buffer): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}

/** The attributes of a message, as `r=nonce,s=salt`, by their letters. */
function readScramMessage(text: string): Record<string, string> {
  return Object.fromEntries(text.split(",").map((part) => [part.slice(0, 1), part.slice(2)]));
}

/** The text of a command's or an answer's `payload`; "" when it has none. */
function payloadText({ payload }: Document): string {
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
        return exchange === undefined ? unproved() : step(exchange.serverFirst, false);
      }
      if (name === "saslContinue") {
        const signature = exchange && endExchange(keys, exchange, body);
        exchange = undefined;
        isOpen = signature !== undefined;
        return signature === undefined ? unproved() : step(`v=${signature.toString("base64")}`, true);
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

const unproved = () => failure("AuthenticationFailed", "Authentication failed.");

function step(text: string, done: boolean): Document {
  return { conversationId: 1, done, payload: toPayload(text), ok: 1 };
}

function toPayload(text: string): Binary {
  return new Binary(Buffer.from(text));
}

function failure(codeName: ErrorName, errmsg: string): Document {
  return { ok: 0, errmsg, code: errorCodes[codeName], codeName };
}

/** Longest wait for all answers, in ms; a server that is slower is asked again. */
const ANSWER_TIMEOUT_MS = 2_000;
/** More than any answer of the exchange has, in bytes. */
const MAX_ANSWER_BYTES = 65_536;

/**
 * Has the server at a socket prove that it knows the password. The driver checks the same for each connection, but takes a
 * server that calls itself an arbiter without any proof. `busy`: no process listens, or it does not answer yet.
 */
export async function proveServer(socketPath: string, password: string): Promise<"serving" | "busy" | "foreign"> {
  const socket = connect(socketPath);
  socket.on("error", () => undefined); // reading throws it too
  const timer = setTimeout(() => socket.destroy(brokenOff()), ANSWER_TIMEOUT_MS);
  try {
    return (await exchange(socket, password)) ? "serving" : "foreign";
  } catch (error) {
    const isBroken = error instanceof Error && "code" in error;
    return isBroken ? "busy" : "foreign"; // it says what no such server says
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

async function exchange(socket: Socket, password: string): Promise<boolean> {
  const ask = makeAsk(socket);
  const clientNonce = makeNonce();
  const clientFirst = `n=${scramUser},r=${clientNonce}`;
  const start = { saslStart: 1, mechanism: scramMechanism, payload: toPayload(`n,,${clientFirst}`), $db: "admin" };
  const serverFirst = payloadText(await ask(start));
  const { r: nonce = "", s: salt = "", i: rounds } = readScramMessage(serverFirst);
  if (!nonce.startsWith(clientNonce) || Number(rounds) !== scramRounds) return false;
  const keys = deriveScramKeys(password, Buffer.from(salt, "base64"));
  const clientLast = `c=biws,r=${nonce}`;
  const all = `${clientFirst},${serverFirst},${clientLast}`;
  const proof = xor(keys.clientKey, hmac(keys.storedKey, all)).toString("base64");
  const end = { saslContinue: 1, conversationId: 1, payload: toPayload(`${clientLast},p=${proof}`), $db: "admin" };
  const { v: signature = "" } = readScramMessage(payloadText(await ask(end)));
  return isSame(Buffer.from(signature, "base64"), hmac(keys.serverKey, all));
}

/** Sends commands, one after the other, and waits for the answer of each. @throws Error with a code when the connection ends. */
function makeAsk(socket: Socket): (command: Document) => Promise<Document> {
  const chunks: AsyncIterator<Buffer> = socket[Symbol.asyncIterator]();
  const inbox = makeInbox(MAX_ANSWER_BYTES);
  return async (command) => {
    socket.write(frameReply({ requestId: 0, isLegacy: false }, encodeDocument(command), 1));
    for (let message = inbox.take(); ; message = inbox.take()) {
      if (message !== undefined) return readRequest(message).body;
      const { value, done } = await chunks.next();
      if (done) throw brokenOff();
      inbox.add(value);
    }
  };
}

function brokenOff(): Error {
  return Object.assign(new Error("no answer"), { code: "ECONNRESET" });
}
