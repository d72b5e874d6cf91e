import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { messagesFormat } from "./anthropic-format.ts";
import { type Behaviour, type FakeUsage, piecesOf, usageOf } from "./behaviour.ts";
import { chatFormat, embeddingsFormat, toEmbeddingUsage } from "./openai-format.ts";
import { rerankFormat, toRerankUsage } from "./rerank-format.ts";
import { responsesFormat } from "./responses-format.ts";
import { countUsage, textOf, type WireFormat, type WireRequest } from "./wire-format.ts";

type RecordedRequest = {
  path: string;
  headers: IncomingHttpHeaders;
  body: WireRequest;
  /** Resolves when the answer was sent whole (`completed`), or the other side or a fault broke it off (`broken`). */
  ended: Promise<"completed" | "broken">;
  /**
   * What the provider would charge for it, to the token: of an answer that breaks off the prompt and what was sent by then,
   * and of one that is given up before it begins the prompt. It charges nothing for what it refuses.
   */
  served: FakeUsage;
  /** Whether a part of a JSON answer that is to break off is on its way. */
  hasBegun: boolean;
};

type Served = { requests: number; inputTokens: number; outputTokens: number };

/** What a model does in each of its turns. */
type Script = (body: WireRequest) => Behaviour;

export type FakeProvider = {
  /** What an OpenAI client takes as base URL. */
  url: string;
  /** What an Anthropic client takes as base URL. */
  origin: string;
  requests: RecordedRequest[];
  /** What was served with an API key, or with all of them: the sums that a ledger must have. */
  served(apiKey?: string): Served;
  /** Behaviours of the next requests, in order; afterwards the default holds again. */
  next(...behaviours: Behaviour[]): void;
  /** The behaviour of requests for which none is queued, or how it follows from what is asked. */
  setDefault(behaviour: Behaviour | Script): void;
  /** What `GET /models` lists from now on, without a record of the request; undefined: it is answered as any other path. */
  listModels(models: readonly object[] | undefined): void;
  /** Forgets requests and behaviours. */
  reset(): void;
  close(): Promise<void>;
};

const formats: Record<string, WireFormat> = {
  "/v1/chat/completions": chatFormat,
  "/v1/embeddings": embeddingsFormat,
  "/v1/messages": messagesFormat,
  "/v1/responses": responsesFormat,
  "/v1/rerank": rerankFormat,
};

/**
 * A server on loopback that speaks the wire formats of OpenAI (chat, responses, embeddings) and Anthropic (messages), and the
 * common one of rerankers; it refuses what they refuse, goes wrong when it is asked to, and counts what it served.
 */
export async function startFakeProvider(): Promise<FakeProvider> {
  const requests: RecordedRequest[] = [];
  let queued: Behaviour[] = [];
  let standard: Behaviour | Script = {};
  let listed: readonly object[] | undefined;
  const server = createServer(async (request, response) => {
    const body: WireRequest = JSON.parse((await readText(request)) || "{}"); // a GET has no body
    if (request.method === "GET" && listed !== undefined) {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ object: "list", data: listed }));
      return;
    }
    const behaviour = queued.shift() ?? (typeof standard === "function" ? standard(body) : standard);
    const ended = new Promise<"completed" | "broken">((resolve) =>
      response.once("close", () => resolve(response.writableFinished ? "completed" : "broken")),
    );
    const served: FakeUsage = { prompt_tokens: 0, completion_tokens: 0 };
    const path = (request.url ?? "").replace(/\?.*/, "");
    const recorded = { path, headers: request.headers, body, ended, served, hasBegun: false };
    requests.push(recorded);
    await answer(recorded, response, behaviour);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the fake provider has no port");
  const origin = `http://127.0.0.1:${address.port}`;
  return {
    url: `${origin}/v1`,
    origin,
    requests,
    served: (apiKey) => sumServed(requests.filter(({ headers }) => apiKey === undefined || keyOf(headers) === apiKey)),
    next: (...behaviours) => void queued.push(...behaviours),
    setDefault: (behaviour) => {
      standard = behaviour;
    },
    listModels: (models) => {
      listed = models;
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

/** The API key of a request, in either provider's header. */
const keyOf = (headers: IncomingHttpHeaders) => headers["x-api-key"] ?? headers.authorization?.replace(/^Bearer /, "");

function sumServed(requests: readonly RecordedRequest[]): Served {
  const sum = { requests: requests.length, inputTokens: 0, outputTokens: 0 };
  for (const { served } of requests) {
    sum.inputTokens += served.prompt_tokens;
    sum.outputTokens += served.completion_tokens;
  }
  return sum;
}

async function readText(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}

async function answer(request: RecordedRequest, response: ServerResponse, behaviour: Behaviour): Promise<void> {
  const { path, body, headers, served } = request;
  if (behaviour.fault?.type === "reset") {
    response.destroy();
    return;
  }
  const isAnswered = behaviour.status === undefined && behaviour.rawBody === undefined;
  if (isAnswered && formats[path]?.refuse(body, headers) === undefined)
    served.prompt_tokens = usageOfAnswer(path, body, behaviour).prompt_tokens;
  if (behaviour.firstByteMs !== undefined) await silence(response, behaviour.firstByteMs);
  await behaviour.until;
  if (response.destroyed) return;
  const send = (status: number, text: string) => {
    response.writeHead(status, { "content-type": "application/json", ...behaviour.headers });
    response.end(text);
  };
  const format = formats[path];
  if (behaviour.rawBody !== undefined) return send(behaviour.status ?? 200, behaviour.rawBody);
  if (format === undefined) return send(404, JSON.stringify(chatFormat.toError({ errorCode: "not_found" })));
  const refused = behaviour.status === undefined ? format.refuse(body, headers) : behaviour;
  if (refused !== undefined) return send(refused.status ?? 400, JSON.stringify(format.toError(refused)));
  if (body.stream !== true) {
    const text = JSON.stringify(format.toAnswer(body, behaviour));
    if (behaviour.fault !== undefined) return sendBrokenJson(request, response, text, behaviour);
    Object.assign(served, usageOfAnswer(path, body, behaviour));
    return send(200, text);
  }
  await sendEvents(request, response, format, behaviour);
}

/** Says nothing for so long, or until the other side leaves. */
async function silence(response: ServerResponse, ms: number): Promise<void> {
  const leaving = new AbortController();
  response.once("close", () => leaving.abort());
  await delay(ms, undefined, { ref: false, signal: leaving.signal }).catch(() => undefined);
}

/** The beginning of a JSON answer, and then what the fault says. */
function sendBrokenJson(request: RecordedRequest, response: ServerResponse, text: string, behaviour: Behaviour): void {
  const { fault, headers } = behaviour;
  const pieces = piecesOf(behaviour);
  const said = pieces.slice(0, fault !== undefined && "afterPieces" in fault ? fault.afterPieces : 0).join("");
  const textAt = text.indexOf(JSON.stringify(pieces.join("")).slice(1, -1));
  const begun = text.slice(0, textAt < 0 ? text.length / 2 : textAt + JSON.stringify(said).length - 2);
  const isWholeBody = fault?.type === "malformed" || fault?.type === "short";
  const length = Buffer.byteLength(isWholeBody ? begun : text);
  response.writeHead(200, { "content-type": "application/json", "content-length": length, ...headers });
  response.write(begun, () => {
    if (textAt >= 0) request.served.completion_tokens = countUsage(request.body, said).completion_tokens;
    request.hasBegun = true;
    if (isWholeBody) response.end();
    else if (fault?.type !== "stall") response.destroy();
  });
}

/** What a whole answer costs, also when it does not tell. */
function usageOfAnswer(path: string, body: WireRequest, behaviour: Behaviour): FakeUsage {
  if (path === "/v1/embeddings") return toEmbeddingUsage(body, behaviour);
  if (path === "/v1/rerank") return toRerankUsage(body, behaviour);
  const counted = () => countUsage(body, textOf(behaviour));
  return usageOf(behaviour, counted) ?? counted();
}

async function sendEvents(
  { path, body, served }: RecordedRequest,
  response: ServerResponse,
  format: WireFormat,
  behaviour: Behaviour,
): Promise<void> {
  const { fault } = behaviour;
  response.writeHead(200, { "content-type": "text/event-stream", ...behaviour.headers });
  const whole = usageOfAnswer(path, body, behaviour);
  const faultAfter = fault !== undefined && "afterPieces" in fault ? fault.afterPieces : undefined;
  Object.assign(served, whole, { completion_tokens: 0 });
  let sent = "";
  let pieces = 0;
  const countSent = () => {
    served.completion_tokens = countUsage(body, sent).completion_tokens;
  };
  for (const { kind, event, data, text } of format.toEvents(body, behaviour)) {
    if (kind !== "head" && pieces === faultAfter) break;
    if (behaviour.hold?.afterPieces === pieces) await behaviour.hold.until;
    if (kind === "piece" && behaviour.pieceMs !== undefined) await delay(behaviour.pieceMs, undefined, { ref: false });
    if (response.destroyed) return;
    response.write(`${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`);
    if (kind === "piece") pieces++;
    sent += text ?? "";
    if (behaviour.pieceMs !== undefined) countSent(); // the client may leave, or look, before the next piece
  }
  countSent();
  if (faultAfter === undefined) {
    Object.assign(served, whole);
    response.end(format.closing);
  } else if (fault?.type === "cut") {
    // The bytes so far reach the other side before the connection breaks.
    response.write(": cut\n\n", () => response.destroy());
  } else if (fault?.type === "short") response.end();
  else if (fault?.type === "malformed") response.end(format.malformedEvent);
  else if (fault?.type === "error-event") response.end(format.errorEvent);
}
