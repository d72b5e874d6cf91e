import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";

export type ToolRequest = {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  /** Resolves when the other side has its answer, or has gone. */
  ended: Promise<"answered" | "left">;
};

export type ToolServer = {
  /** As `http://127.0.0.1:4711`; name it in FETCH_ALLOW_ORIGINS. */
  origin: string;
  /** As `127.0.0.1:4711`, for `allowedHosts`. */
  host: string;
  requests: ToolRequest[];
  /** Answers a path from now on. */
  on(path: string, answer: (request: ToolRequest, response: ServerResponse) => void | Promise<void>): void;
  close(): Promise<void>;
};

/** A web service on loopback that agents call, which remembers how it was called. */
export async function startToolServer(): Promise<ToolServer> {
  const requests: ToolRequest[] = [];
  const answers = new Map<string, (request: ToolRequest, response: ServerResponse) => void | Promise<void>>();
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const ended = once(response, "close").then((): "answered" | "left" =>
      response.writableFinished ? "answered" : "left",
    );
    const { method = "", url: path = "", headers } = request;
    const seen = { method, path, headers, body: Buffer.concat(parts).toString("utf8"), ended };
    requests.push(seen);
    const answer = answers.get(path.split("?")[0] ?? path);
    if (answer) await answer(seen, response);
    else response.writeHead(404, { "content-type": "text/plain" }).end("none");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the tool server has no port");
  const host = `127.0.0.1:${address.port}`;
  return {
    origin: `http://${host}`,
    host,
    requests,
    on: (path, answer) => void answers.set(path, answer),
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
