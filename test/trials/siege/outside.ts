import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";

/** A server of somebody's outside the platform, which the platform calls: a receiver, a provider, a page, a server of tools. */
export type Outside = {
  /** As `http://127.0.0.1:4711`; the platform must be allowed to call it. */
  origin: string;
  /** Answers all calls so from now on. Before, each is a 204. */
  answer(listener: RequestListener): void;
  close(): void;
};

export async function openOutside(): Promise<Outside> {
  let listener: RequestListener = (_, response) => void response.writeHead(204).end();
  const server = createServer((request, response) => {
    response.on("error", () => undefined); // the platform may leave at any time
    listener(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a server outside has no port");
  return {
    origin: `http://127.0.0.1:${address.port}`,
    answer(next) {
      listener = next;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** The JSON that a call came with; undefined for one that was cut. */
export async function bodyOf(request: IncomingMessage): Promise<unknown> {
  try {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    return JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch {
    return undefined;
  }
}
