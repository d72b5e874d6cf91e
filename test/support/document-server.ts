import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export type ServedDocument = {
  body: string | Buffer;
  type?: string;
  status?: number;
  headers?: Record<string, string>;
};
export type DocumentServer = {
  /** As `http://127.0.0.1:4711`; name it in FETCH_ALLOW_ORIGINS. */
  origin: string;
  /**
   * Serves a document at a path from now on; a function is asked at each request and may take its time. One with an `etag` is
   * not sent again to who has it.
   */
  put(path: string, document: ServedDocument | (() => ServedDocument | Promise<ServedDocument>)): void;
  hits(path: string): number;
  close(): void;
};

/** A web server of documents on loopback. */
export async function startDocumentServer(): Promise<DocumentServer> {
  const documents = new Map<string, () => ServedDocument | Promise<ServedDocument>>();
  const hits = new Map<string, number>();
  const server = createServer(async (request, response) => {
    const path = request.url ?? "/";
    hits.set(path, (hits.get(path) ?? 0) + 1);
    const document = await documents.get(path)?.();
    if (!document) return void response.writeHead(404).end("none");
    const { body, type = "text/plain", status = 200, headers = {} } = document;
    if (headers.etag && headers.etag === request.headers["if-none-match"])
      return void response.writeHead(304, headers).end();
    response.writeHead(status, { "content-type": type, ...headers }).end(body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // a TCP server that listens has one
  return {
    origin: `http://127.0.0.1:${port}`,
    put: (path, document) => void documents.set(path, typeof document === "function" ? document : () => document),
    hits: (path) => hits.get(path) ?? 0,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
