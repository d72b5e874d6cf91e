import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { setImmediate as turn } from "node:timers/promises";

/** A request as it came. */
type Recorded = { path: string; headers: IncomingHttpHeaders; raw: string };
/** What is answered, in the pieces in which it is written; `isCut` breaks the connection off after them. */
export type Scripted = {
  status?: number;
  headers?: Record<string, string>;
  pieces: readonly string[];
  isCut?: boolean;
};

/** A server on loopback that keeps requests byte for byte, and sends the answers that it was given, one a request. */
export async function startRecordingUpstream() {
  const requests: Recorded[] = [];
  let answers: Scripted[] = [];
  let always: ((raw: string) => Scripted) | undefined;
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const raw = Buffer.concat(parts).toString("utf8");
    requests.push({ path: request.url ?? "", headers: request.headers, raw });
    const answer = answers.shift() ?? always?.(raw) ?? { status: 500, pieces: ["{}"] };
    const { status = 200, headers, pieces, isCut } = answer;
    response.writeHead(status, { "content-type": "application/json", ...headers });
    for (const piece of pieces) {
      await new Promise((resolve) => response.write(piece, resolve));
      await turn();
    }
    if (isCut) response.destroy();
    else response.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the upstream has no port");
  return {
    origin: `http://127.0.0.1:${address.port}`,
    requests,
    /** Forgets all requests, and sets the answers to the next ones. */
    play(...next: Scripted[]): void {
      requests.length = 0;
      answers = next;
      always = undefined;
    },
    /** Forgets all requests, and answers the next ones by their bodies. */
    answer(by: (raw: string) => Scripted): void {
      requests.length = 0;
      answers = [];
      always = by;
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
