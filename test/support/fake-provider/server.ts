import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import type { Behaviour } from "./behaviour.ts";
import { chatChunks, chatCompletion, embeddingList, errorBody, type WireRequest } from "./wire.ts";

type RecordedRequest = {
  path: string;
  headers: IncomingHttpHeaders;
  body: WireRequest;
  /** Resolves when the answer was sent whole (`completed`), or the other side or a fault broke it off (`broken`). */
  ended: Promise<"completed" | "broken">;
};

export type FakeProvider = {
  /** What an OpenAI client takes as base URL. */
  url: string;
  requests: RecordedRequest[];
  /** Behaviours of the next requests, in order; afterwards the default holds again. */
  next(...behaviours: Behaviour[]): void;
  /** The behaviour of requests for which none is queued. */
  setDefault(behaviour: Behaviour): void;
  /** Forgets requests and behaviours. */
  reset(): void;
  close(): Promise<void>;
};

/** A server on loopback that speaks OpenAI's wire format for chat and embeddings, and goes wrong when it is told to. */
export async function startFakeProvider(): Promise<FakeProvider> {
  const requests: RecordedRequest[] = [];
  let queued: Behaviour[] = [];
  let standard: Behaviour = {};
  const server = createServer(async (request, response) => {
    const body: WireRequest = JSON.parse(await readText(request));
    const behaviour = queued.shift() ?? standard;
    const ended = new Promise<"completed" | "broken">((resolve) =>
      response.once("close", () => resolve(response.writableFinished ? "completed" : "broken")),
    );
    requests.push({ path: request.url ?? "", headers: request.headers, body, ended });
    await answer(request, response, body, behaviour);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the fake provider has no port");
  return {
    url: `http://127.0.0.1:${address.port}/v1`,
    requests,
    next: (...behaviours) => void queued.push(...behaviours),
    setDefault: (behaviour) => {
      standard = behaviour;
    },
    reset: () => {
      requests.length = 0;
      queued = [];
      standard = {};
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

async function readText(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  body: WireRequest,
  behaviour: Behaviour,
): Promise<void> {
  if (behaviour.fault?.type === "reset") {
    response.destroy();
    return;
  }
  if (behaviour.firstByteMs !== undefined) await delay(behaviour.firstByteMs, undefined, { ref: false });
  const send = (status: number, text: string) => {
    response.writeHead(status, { "content-type": "application/json", ...behaviour.headers });
    response.end(text);
  };
  if (behaviour.rawBody !== undefined) return send(behaviour.status ?? 200, behaviour.rawBody);
  if (behaviour.status !== undefined) return send(behaviour.status, JSON.stringify(errorBody(behaviour)));
  if (request.url === "/v1/embeddings") return send(200, JSON.stringify(embeddingList(body, behaviour)));
  if (request.url !== "/v1/chat/completions") return send(404, JSON.stringify(errorBody({ errorCode: "not_found" })));
  if (body.stream !== true) return send(200, JSON.stringify(chatCompletion(body, behaviour)));
  await streamChunks(response, chatChunks(body, behaviour), behaviour);
}

async function streamChunks(response: ServerResponse, chunks: readonly string[], behaviour: Behaviour): Promise<void> {
  const { fault } = behaviour;
  response.writeHead(200, { "content-type": "text/event-stream", ...behaviour.headers });
  const faultAfter = fault !== undefined && "afterPieces" in fault ? fault.afterPieces + 1 : undefined; // the role comes first
  for (const [n, chunk] of chunks.entries()) {
    if (n === faultAfter) break;
    if (n > 0 && behaviour.pieceMs !== undefined) await delay(behaviour.pieceMs, undefined, { ref: false });
    if (response.destroyed) return;
    response.write(`data: ${chunk}\n\n`);
  }
  if (faultAfter === undefined) {
    response.end("data: [DONE]\n\n");
  } else if (fault?.type === "cut") {
    // The bytes so far reach the other side before the connection breaks.
    response.write(": cut\n\n", () => response.destroy());
  } else if (fault?.type === "short") response.end();
  else if (fault?.type === "malformed") response.end('data: {"choices": [{"delta"\n\ndata: [DONE]\n\n');
  else if (fault?.type === "error-event")
    response.end('data: {"error":{"message":"overloaded","code":"overloaded"}}\n\n');
}
