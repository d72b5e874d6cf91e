import type { Client, JSONRPCMessage, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AppError } from "../../lib/errors.ts";
import { tryParseJson } from "../../lib/try-parse-json.ts";
import type { ToolSetup } from "./tool.ts";

/**
 * The official client of the Model Context Protocol, which finds out the era of a server and opens its session. Requests go over
 * its transport as they are, and results come as the server sent them: to the client's own methods, one malformed tool spoils
 * the list, a content of a new type the result, and a task is no result.
 */

/** How a server is reached. `signal` bounds the time to connect; `share` does a part of its tenant's work in its turn. */
export type Connection = {
  url: string;
  headers: Record<string, string>;
  fetch: typeof fetch;
  signal: AbortSignal;
} & Pick<ToolSetup, "share">;

/** What a server returned as an error, which another try would not change. */
export class RefusedByServer extends Error {}

type Params = Readonly<Record<string, unknown>>;
type Options = { signal: AbortSignal; headers?: Readonly<Record<string, string>> };

/** Sends one request. @throws RefusedByServer the server's error; the signal's reason; the error of the connection. */
export type Request = (method: string, params: Params, options: Options) => Promise<Record<string, unknown>>;

/** A server as it is spoken to. `isStateless`: by 2026-07-28, whose requests need no session. */
export type Remote = {
  isStateless: boolean;
  request: Request;
  /** The end of the connection waits for this work, whose last request may cancel a task. */
  finish<T>(work: Promise<T>): Promise<T>;
};

const clientInfo = { name: "switchyard", version: "1.0.0" };
const capabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } };
/** Longest time to begin a session again, in ms. */
const REOPEN_TIMEOUT_MS = 10_000;

/**
 * Connects to a server, until the run has ended. A server may end a session, for instance when it starts again, and answers 404
 * from then on (specification, "Session Management"): the request that meets this is made again in a new one, once.
 * @throws if the server cannot be reached, and if it speaks another protocol.
 */
export async function connectTo(to: Connection, closeAtEnd: ToolSetup["closeLater"]): Promise<Remote> {
  const unfinished = new Set<Promise<unknown>>();
  const closeLater: typeof closeAtEnd = (close) =>
    closeAtEnd(async () => {
      await Promise.allSettled(unfinished);
      await close();
    });
  let current = openSession(to, closeLater, "auto");
  const { isStateless } = await current;
  const request: Request = async (...given) => {
    const mine = current;
    const session = await mine;
    try {
      return await session.request(...given);
    } catch (error) {
      if (!session.hasEnded(error)) throw error;
      if (current === mine) {
        const signal = AbortSignal.any([given[2].signal, AbortSignal.timeout(REOPEN_TIMEOUT_MS)]);
        current = openSession({ ...to, signal }, closeLater, "legacy");
        current.catch(() => undefined); // those that wait for it throw it
      }
      return await (await current).request(...given);
    }
  };
  const finish: Remote["finish"] = (work) => {
    unfinished.add(work);
    const forget = () => unfinished.delete(work);
    work.then(forget, forget);
    return work;
  };
  return { isStateless, request, finish };
}

async function openSession(to: Connection, closeLater: ToolSetup["closeLater"], mode: "auto" | "legacy") {
  const { url, headers, fetch, signal } = to;
  signal.throwIfAborted();
  // Loaded by workers alone, and by runs that need it.
  const sdk = await import("@modelcontextprotocol/client");
  const client = new sdk.Client(clientInfo, { capabilities, versionNegotiation: { mode } });
  const transport = new sdk.StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers },
    fetch: async (target, init) => refuseSilence(await fetch(target, init), init?.body),
  });
  boundAnswers(transport);
  closeLater(() => client.close());
  const abort = () => void transport.close();
  signal.addEventListener("abort", abort, { once: true });
  try {
    await client.connect(transport, { signal });
  } catch (error) {
    signal.throwIfAborted();
    // A server of the older era may answer the question for its era with a failure, or with no JSON.
    const isUnclear = error instanceof sdk.SdkError && error.code === sdk.SdkErrorCode.EraNegotiationFailed;
    if (mode === "auto" && isUnclear && !(error.cause instanceof AppError))
      return openSession(to, closeLater, "legacy");
    throw error;
  } finally {
    signal.removeEventListener("abort", abort);
  }
  const isStateless = client.getProtocolEra() === "modern";
  const meta = {
    [sdk.PROTOCOL_VERSION_META_KEY]: client.getNegotiatedProtocolVersion(),
    [sdk.CLIENT_INFO_META_KEY]: clientInfo,
    [sdk.CLIENT_CAPABILITIES_META_KEY]: capabilities,
  };
  return {
    isStateless,
    request: makeRequest(client, transport, isStateless ? meta : {}),
    hasEnded: (error: unknown) =>
      transport.sessionId !== undefined && error instanceof sdk.SdkHttpError && error.status === 404,
  };
}

/** Answers that a session gives to requests of its server, which may ask for so much that its own answers are nothing to it. */
const MAX_ANSWERS = 100;

/** Lets the client answer a server's first requests alone: each answer is an HTTP request. */
function boundAnswers(transport: StreamableHTTPClientTransport): void {
  const send = transport.send.bind(transport);
  let answered = 0;
  transport.send = async (message, options) => {
    if (!("method" in message)) answered += 1;
    if (answered <= MAX_ANSWERS || "method" in message) await send(message, options);
  };
}

/** A request that is answered by a 202 without a body, as if it were a notification, would wait for ever: it is refused. */
function refuseSilence(response: Response, sent: unknown): Response {
  if (response.status !== 202 || typeof sent !== "string") return response;
  const { id, method } = Object(JSON.parse(sent)); // the client's own JSON
  return id === undefined || method === undefined
    ? response
    : new Response("The server took the request for a notification.", { status: 400 });
}

/** The error of the protocol that a failed response holds: since 2026-07-28, one may have any status. */
function refusalOf(error: unknown): RefusedByServer | undefined {
  const { message } = Object(Object(tryParseJson(String(Object(Object(error).data).text))).error);
  return typeof message === "string" ? new RefusedByServer(message) : undefined;
}

/** Below it are the ids of the client's own requests. */
const FIRST_ID = 1_000;

/** Requests over a connected client's transport; all other messages stay the client's. `meta`: what each says of itself. */
function makeRequest(client: Client, transport: StreamableHTTPClientTransport, meta: object): Request {
  const waiting = new Map<unknown, (message: JSONRPCMessage) => void>();
  const pass = transport.onmessage;
  transport.onmessage = (message) => {
    const resolve = "id" in message && !("method" in message) ? waiting.get(message.id) : undefined;
    if (resolve) resolve(message);
    else pass?.(message);
  };
  const isStateless = client.getProtocolEra() === "modern";
  let lastId = FIRST_ID;
  return async (method, { _meta, ...params }, { signal, headers = {} }) => {
    signal.throwIfAborted();
    lastId += 1;
    const id = lastId;
    const { promise, resolve, reject } = Promise.withResolvers<JSONRPCMessage>();
    const abort = () => {
      reject(signal.reason);
      if (isStateless) return; // there the end of the connection says it
      client.notification({ method: "notifications/cancelled", params: { requestId: id } }).catch(() => undefined);
    };
    waiting.set(id, resolve);
    signal.addEventListener("abort", abort, { once: true });
    try {
      const all = { ...params, _meta: { ...Object(_meta), ...meta } };
      const onRequestStreamEnd = () => reject(new Error("The server ended its answer without a result."));
      const options = { headers, requestSignal: signal, onRequestStreamEnd };
      const fail = (error: unknown) => reject((isStateless && refusalOf(error)) || error);
      transport.send({ jsonrpc: "2.0", id, method, params: all }, options).catch(fail);
      const message = await promise;
      if ("result" in message) return message.result;
      throw new RefusedByServer("error" in message ? message.error.message : "no result");
    } finally {
      waiting.delete(id);
      signal.removeEventListener("abort", abort);
    }
  };
}
