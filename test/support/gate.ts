import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export type Gate = {
  origin: string;
  host: string;
  /** Connections that were opened to it, whether let through or not. */
  opened(): number;
  /** From now on connections are kept waiting, and nothing of them goes on; what waits is dropped by `open`. */
  shut(): void;
  open(): void;
  close(): Promise<void>;
};

/** A way to a server on loopback that can be shut: whoever calls has connected, and the server has seen nothing yet. */
export async function startGate(port: number): Promise<Gate> {
  let isShut = false;
  let opened = 0;
  const waiting = new Set<Socket>();
  const server = createServer((socket) => {
    opened += 1;
    socket.on("error", () => socket.destroy()); // the other side was killed
    if (isShut) {
      waiting.add(socket);
      return;
    }
    const onward = connect(port, "127.0.0.1");
    onward.on("error", () => socket.destroy());
    socket.once("close", () => onward.destroy()); // a pipe does not pass on that its source was reset
    socket.pipe(onward).pipe(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the gate has no port");
  const drop = () => {
    for (const socket of waiting) socket.destroy();
    waiting.clear();
  };
  return {
    origin: `http://127.0.0.1:${address.port}`,
    host: `127.0.0.1:${address.port}`,
    opened: () => opened,
    shut: () => {
      isShut = true;
    },
    open: () => {
      isShut = false;
      drop();
    },
    close: async () => {
      drop();
      server.close();
      await once(server, "close");
    },
  };
}
