import { idSchema } from "../../src/lib/ids.ts";
import { declareRoutes, type HandlerInput, type JsonReply, type Reply, type RouteEnvelope } from "../route.ts";
import {
  type Incoming,
  isUnavailable,
  RpcFault,
  type RpcId,
  type RpcResponse,
  readMessage,
  rpcBodySchema,
  rpcCodes,
  rpcError,
  rpcErrorSchema,
  rpcEventSchema,
  rpcFailureSchema,
  rpcReplySchema,
  toText,
} from "./json-rpc.ts";
import { type McpRequest, refuse, resultOf, toFault } from "./methods.ts";
import { callWithProgress, progressTokenOf } from "./progress.ts";
import { reply } from "./results.ts";
import { isSince, readDialect, readHeader, revisions } from "./revisions.ts";
import { streamResult, takeAnswer } from "./tasks.ts";

const MAX_BATCH = 50;

/** Bodies that cannot be read, and callers over their limits, get errors of the protocol; our other errors keep their shape. */
const envelope: RouteEnvelope = {
  toReply(error, requestId) {
    const { code, type, message, details } = error;
    if (type === "rate_limit_error") return { status: 200, body: toRpcError(null, refuse(error, requestId)) };
    if (type !== "invalid_request_error") return undefined;
    const rpcCode = code === "invalid_request" ? rpcCodes.request : rpcCodes.parse;
    return { status: 400, body: rpcError(null, rpcCode, message, details) };
  },
};

export const toolServer = declareRoutes({ auth: "member", tags: ["Tool server"] }).post("/mcp", {
  summary: "The tool server: JSON-RPC 2.0 as the Model Context Protocol speaks it",
  description:
    `The revisions ${revisions.toReversed().join(", ")}: up to 2025-11-25 with \`initialize\` and \`ping\`, since 2026-07-28 with ` +
    "`server/discover`; `tools/list` and `tools/call` in all of them, in batches up to 2025-03-26; tasks since 2025-11-25, whose " +
    "`tasks/result` responds with a stream, as a call with a `progressToken` does. Every valid request gets a " +
    "200, also when its result is an error, but for the 400 and 404 of 2026-07-28; notifications a 202. A failed tool call is a " +
    "result with `isError: true`. A batch holds 50 messages at most. A caller over its limits is refused inside a 200, with the " +
    "id null when its body is larger than 16 KiB. No session is kept: any process can respond. A foreign `Host` or `Origin` is a 403.",
  headers: {
    "mcp-protocol-version": "The revision, since 2025-06-18",
    "mcp-method": "The method of the body, since 2026-07-28",
    "mcp-name": "The name of the tool, or the id of the task, since 2026-07-28",
  },
  body: rpcBodySchema,
  bodyLimit: "tools",
  keepsDigits: true,
  envelope,
  responses: {
    200: { description: "The response, or the responses of a batch", body: rpcReplySchema, events: rpcEventSchema },
    202: { description: "Only notifications or responses: nothing to return" },
    400: { description: "The body is not JSON-RPC, or does not fit its headers or its revision", body: rpcErrorSchema },
    404: { description: "The revision 2026-07-28 has no such method here", body: rpcErrorSchema },
    503: { description: "A needed part is down", body: rpcFailureSchema },
  },
  errors: ["foreign_origin"],
  example: {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "svc_rag_query", arguments: { query: "When is the pump bled?", topK: 3 } },
  },
  async handler(input) {
    const { body } = input;
    try {
      if (Array.isArray(body)) return await respondToBatch(input, body);
    } catch (error) {
      if (!(error instanceof RpcFault)) throw error;
      return { status: error.status ?? 200, body: toRpcError(null, error) };
    }
    const message = readMessage(body);
    const stream = await streamOf(input, message);
    if (stream !== undefined) return stream;
    const responded = await respond(input, message, { isAdmitted: true });
    if (responded === undefined) return { status: 202 };
    return toReply(responded);
  },
});

/** @throws RpcFault for all of it. */
async function respondToBatch(input: HandlerInput, body: readonly unknown[]): Promise<JsonReply> {
  if (isSince({ revision: readHeader(input) }, "2025-06-18")) throw badBatch("is not of this revision", 400);
  const messages = body.slice(0, MAX_BATCH + 1).map(readMessage);
  if (messages.length > MAX_BATCH) throw badBatch(`holds ${MAX_BATCH} messages at most`);
  const methods = messages.map((message) => (message.kind === "request" ? message.method : undefined));
  if (methods.filter((method) => method === "tools/list").length > 1) throw badBatch("asks for tools/list once");
  // The first call runs on the request's own place; each further one takes another.
  const first = methods.indexOf("tools/call");
  const given = await Promise.all(
    messages.map((message, place) => respond(input, message, { isAdmitted: place === first })),
  );
  const responses = given.flatMap((each) => (each === undefined ? [] : [each.response]));
  if (responses.length === 0) return { status: 202 };
  return withStatus(responses, { status: 200, body: responses });
}

/** One error for the whole of a batch that is too large, or whose response would be: one for each message would multiply it. */
const badBatch = (rule: string, status = 200) => new RpcFault(rpcCodes.request, `A batch ${rule}.`, { status });

/** 503 when whatever was asked for is unavailable, so that clients and proxies try again. */
function withStatus(responses: readonly RpcResponse[], made: JsonReply): JsonReply {
  return responses.every(isUnavailable) ? { ...made, status: 503, headers: { "retry-after": "2" } } : made;
}

const approvalId = idSchema("approval");

/** Takes what a client returned to a question of ours, whose id is that of an approval. */
async function hear(
  input: HandlerInput,
  { id, result }: { id: unknown; result: unknown },
): Promise<undefined | Responded> {
  const about = approvalId.safeParse(id);
  if (!about.success || result === undefined || input.rejection) return undefined;
  try {
    await takeAnswer(input, about.data, result);
    return undefined;
  } catch (error) {
    return { response: toRpcError(null, toFault(error, input.requestId)), status: 400 };
  }
}

type Request = Extract<Incoming, { kind: "request" }>;
type Options = Pick<McpRequest, "isAdmitted" | "onJob">;
type Responded = { response: RpcResponse; status: number };
const toReply = ({ response, status }: Responded) =>
  withStatus([response], { status, body: response, text: toText(response) });

/** The response to one message, with its HTTP status when it comes alone; undefined for one that needs none. */
async function respond(input: HandlerInput, incoming: Incoming, options: Options): Promise<Responded | undefined> {
  if (incoming.kind === "silent") return undefined;
  if (incoming.kind === "answer") return hear(input, incoming);
  const { id } = incoming;
  if (incoming.kind === "request") return respondToRequest(input, incoming, options);
  return { response: rpcError(id, incoming.code ?? rpcCodes.request, incoming.message), status: 200 };
}

async function respondToRequest(input: HandlerInput, incoming: Request, options: Options): Promise<Responded> {
  const { id } = incoming;
  try {
    const dialect = readDialect(input, incoming);
    const result = await resultOf(input, { ...incoming, dialect, ...options });
    return { response: reply(id, dialect, result), status: 200 };
  } catch (error) {
    const fault = toFault(error, input.requestId);
    return { response: toRpcError(id, fault), status: fault.status ?? 200 };
  }
}

const toRpcError = (id: RpcId, { code, message, data }: RpcFault) => rpcError(id, code, message, data);

/** The stream that a request is answered by; undefined when it is another request. */
async function streamOf(input: HandlerInput, incoming: Incoming): Promise<Reply | undefined> {
  if (incoming.kind !== "request" || input.rejection) return undefined;
  const { id, params, method } = incoming;
  const token = method === "tools/call" ? progressTokenOf(input, params) : undefined;
  if (token !== undefined) {
    const respond = (onJob: Options["onJob"]) => respondToRequest(input, incoming, { isAdmitted: true, onJob });
    return callWithProgress({ id, token, respond, toReply });
  }
  if (method !== "tasks/result") return undefined;
  try {
    const dialect = readDialect(input, incoming);
    return dialect.revision === "2025-11-25" ? await streamResult(input, id, { params, dialect }) : undefined;
  } catch (error) {
    const fault = toFault(error, input.requestId);
    return { status: fault.status ?? 200, body: toRpcError(id, fault) };
  }
}
