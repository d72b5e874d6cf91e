import { connect, type Socket } from "node:net";
import type { Document } from "../bson/bson-types.ts";
import { encodeDocument } from "../bson/codec.ts";
import {
  deriveScramKeys,
  hmac,
  isSame,
  makeNonce,
  payloadText,
  readScramMessage,
  scramMechanism,
  scramRounds,
  scramUser,
  toPayload,
  xor,
} from "./scram.ts";
import { frameReply, headerBytes, MalformedMessage, messageLength, readRequest } from "./wire.ts";

/** Longest wait for all answers, in ms; a server that is slower is asked again. */
const ANSWER_TIMEOUT_MS = 2_000;
/** More than any answer of the exchange has, in bytes. */
const MAX_ANSWER_BYTES = 65_536;

/** `silent`: no process listens, or it does not answer yet. `foreign`: it does not know the password. */
export type ServerProof = "own" | "foreign" | "silent";

/**
 * Has the server at a socket prove that it knows the password. The driver checks the same for each connection, but takes a
 * server that calls itself an arbiter without any proof.
 */
export async function proveServer(socketPath: string, password: string): Promise<ServerProof> {
  const socket = connect(socketPath);
  socket.on("error", () => undefined); // reading throws it too
  const timer = setTimeout(() => socket.destroy(brokenOff()), ANSWER_TIMEOUT_MS);
  try {
    return (await exchange(socket, password)) ? "own" : "foreign";
  } catch (error) {
    const isBroken = error instanceof Error && "code" in error;
    return isBroken ? "silent" : "foreign"; // it says what no such server says
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
  return async (command) => {
    socket.write(frameReply({ requestId: 0, isLegacy: false }, encodeDocument(command), 1));
    let bytes = Buffer.alloc(0);
    while (bytes.length < headerBytes || bytes.length < messageLength(bytes)) {
      if (bytes.length > MAX_ANSWER_BYTES) throw new MalformedMessage("an answer that is too long");
      const { value, done } = await chunks.next();
      if (done) throw brokenOff();
      bytes = Buffer.concat([bytes, value]);
    }
    return readRequest(bytes.subarray(0, messageLength(bytes))).body;
  };
}

function brokenOff(): Error {
  return Object.assign(new Error("no answer"), { code: "ECONNRESET" });
}
