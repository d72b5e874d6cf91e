import type { Socket } from "node:net";
import { Binary, BSON, type Document } from "mongodb";
import { frameReply, readRequest } from "../../src/embedded/mongo/wire/wire.ts";

/**
 * A store that takes any proof for right, and signs with what it makes up. It calls itself an arbiter, of which a driver
 * asks no proof.
 */
export function makeLyingStore(): (socket: Socket) => void {
  const hello = { isWritablePrimary: true, arbiterOnly: true, setName: "x", minWireVersion: 0, maxWireVersion: 21 };
  const answerTo = (body: Document): Document => {
    if ("saslStart" in body) {
      const [, nonce = ""] = /r=(.*)/.exec(Buffer.from((body.payload as Binary).value()).toString()) ?? [];
      const text = `r=${nonce}more,s=${Buffer.alloc(16).toString("base64")},i=4096`;
      return { conversationId: 1, done: false, payload: new Binary(Buffer.from(text)), ok: 1 };
    }
    if ("saslContinue" in body) {
      const text = `v=${Buffer.alloc(32).toString("base64")}`;
      return { conversationId: 1, done: true, payload: new Binary(Buffer.from(text)), ok: 1 };
    }
    return { ...hello, ok: 1 };
  };
  return (socket) => {
    socket.on("data", (bytes) => {
      const request = readRequest(bytes);
      socket.write(frameReply(request, BSON.serialize(answerTo(request.body)), 1));
    });
  };
}
