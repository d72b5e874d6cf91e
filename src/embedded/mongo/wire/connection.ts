import type { Socket } from "node:net";
import type { Logger } from "../../../logger.ts";
import type { Dispatcher } from "./dispatch.ts";
import { encodeReply } from "./reply.ts";
import type { Gate } from "./scram.ts";
import { frameReply, makeInbox, readRequest } from "./wire.ts";

let lastReplyId = 0;

/**
 * Serves one client: cuts its bytes into messages, has them answered in order, and stops reading while it does not take
 * its answers. Bytes that are no message close this connection and no other.
 */
export function serveConnection(options: {
  socket: Socket;
  connectionId: number;
  dispatcher: Dispatcher;
  /** Lets commands through once the client has proved itself; any client may run any without it. */
  gate?: Gate | undefined;
  logger: Logger;
}): void {
  const { socket, connectionId, dispatcher, gate, logger } = options;
  const inbox = makeInbox();
  const answer = (message: Buffer) => {
    const request = readRequest(message);
    const send = (body: Buffer) => {
      if (request.isSilent || socket.destroyed) return;
      lastReplyId = (lastReplyId + 1) & 0x7fff_ffff;
      if (!socket.write(frameReply(request, body, lastReplyId))) socket.pause();
    };
    const atGate = gate?.(request.body);
    if (atGate === undefined) dispatcher.dispatch(request, connectionId, send);
    else send(encodeReply(atGate));
  };
  socket.setNoDelay(true);
  socket.on("data", (bytes) => {
    try {
      inbox.add(bytes);
      for (let message = inbox.take(); message !== undefined; message = inbox.take()) answer(message);
    } catch (error) {
      logger.warn({ err: error, connectionId }, "a malformed message: the connection is closed");
      socket.destroy();
    }
  });
  socket.on("drain", () => socket.resume());
  socket.on("error", (error) => logger.debug({ err: error, connectionId }, "a client's connection broke"));
}
