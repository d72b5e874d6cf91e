import { once } from "node:events";
import { createServer } from "node:http";

/** A proxy on loopback that lets nothing through, and knows where a client wanted to go. */
export async function startRefusingProxy() {
  const hosts = new Set<string>();
  const server = createServer((request, response) => {
    hosts.add(request.headers.host ?? "");
    response.writeHead(403).end();
  });
  server.on("connect", ({ url = "" }, socket) => {
    hosts.add(url);
    socket.on("error", () => undefined); // the client gave up first
    socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the proxy has no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    /** The hosts that were asked for since the last call. */
    takeHosts(): string[] {
      const taken = [...hosts];
      hosts.clear();
      return taken;
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
