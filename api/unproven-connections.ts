import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";

/** Connections on which no call was admitted yet, in one process. They have memory and a file descriptor each. */
const MAX_UNPROVEN = 4_096;

export type UnprovenConnections = ReturnType<typeof makeUnprovenConnections>;

/**
 * Bounds what callers without a key can hold by their connections alone: beyond MAX_UNPROVEN of those on which no call was
 * admitted, the one that has been silent the longest is closed for each that is opened. Those of admitted calls are bounded by
 * the rates of their tenants.
 */
export function makeUnprovenConnections() {
  const unproven = new Set<Socket>();
  const add = (socket: Socket) => {
    unproven.add(socket);
    socket.once("close", () => unproven.delete(socket));
    if (unproven.size > MAX_UNPROVEN) for (const oldest of unproven) return void drop(oldest);
  };
  const drop = (socket: Socket) => {
    unproven.delete(socket); // at once: it closes after the next ones were opened
    socket.destroy();
  };
  const moveToEnd = ({ socket }: IncomingMessage) => {
    if (unproven.delete(socket)) unproven.add(socket);
  };
  return {
    watch: (server: Server): void => void server.on("connection", add).on("request", moveToEnd),
    /** Takes a connection out of the bound: a call on it was admitted. */
    prove: (socket: Socket): void => void unproven.delete(socket),
  };
}
