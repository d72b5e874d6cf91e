import type { InitializeResult, ListToolsResult } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import type { AppError } from "../src/errors.ts";
import { toJsonSchema } from "../src/json-schema.ts";
import { allTools } from "../src/mcp-tools/all-tools.ts";
import type { Role } from "../src/store/key-store.ts";
import { hasRole } from "../src/tenancy/roles.ts";
import {
  type Incoming,
  type RpcId,
  type RpcResponse,
  readMessage,
  rpcAnswerSchema,
  rpcBodySchema,
  rpcCodes,
  rpcError,
  rpcErrorSchema,
  rpcResult,
} from "./json-rpc.ts";
import { type Answer, answerToolCall } from "./mcp-tools.ts";
import { toErrorBody } from "./middleware/errors.ts";
import { apiVersion } from "./middleware/request-id.ts";
import { errorBodySchema } from "./openapi.ts";
import { declareRoutes, type HandlerInput, type JsonReply, type RouteEnvelope } from "./route.ts";
import { named } from "./schema-names.ts";

/** The one revision that is spoken, whatever the client offers (modelcontextprotocol.io/specification/2024-11-05). */
const PROTOCOL_VERSION = "2024-11-05";
const MAX_BATCH = 50;

const instructions =
  "Switchyard: models of several providers behind one gateway, search over the documents of your tenant, your tenant's " +
  "agents, and patterns of several models. Tools return JSON as text. A long run returns a jobId; follow it at its " +
  "statusUrl with the same key.";

/**
 * Bodies that could not be read, and those that are not read because the caller is over its limits, are answered in the
 * protocol's own shape. Others of our errors keep theirs.
 */
const envelope: RouteEnvelope = {
  toReply(error, requestId) {
    const { code, type, message, details } = error;
    if (type === "rate_limit_error") return { status: 200, body: refuse(null, error, requestId) };
    if (type !== "invalid_request_error") return undefined;
    const rpcCode = code === "invalid_request" ? rpcCodes.request : rpcCodes.parse;
    return { status: 400, body: rpcError(null, rpcCode, message, details) };
  },
};

const toolServer = declareRoutes({ auth: "member", tags: ["Tool server"] }).post("/mcp", {
  summary: "The tool server: JSON-RPC 2.0 as the Model Context Protocol speaks it, revision 2024-11-05",
  description:
    "`initialize`, `ping`, `tools/list` and `tools/call`, single or in batches. Every valid request is answered 200, also " +
    "when its result is an error; notifications 202. What a tool cannot do is a result with `isError: true`. " +
    "A batch holds 50 messages at most. A caller over its limits is refused inside a 200, with the id null when its body is " +
    "larger than 16 KiB. No session is kept: any process answers. A foreign `Host` or `Origin` is a 403.",
  body: rpcBodySchema,
  bodyLimit: "tools",
  envelope,
  responses: {
    200: { description: "The answer, or the answers of a batch", body: rpcAnswerSchema },
    202: { description: "Nothing was asked: notifications or responses" },
    400: { description: "The body is no JSON-RPC", body: rpcErrorSchema },
    503: {
      description: "A needed part is down",
      body: named("RpcFailure", z.union([rpcAnswerSchema, errorBodySchema])),
    },
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
    const messages = Array.isArray(body) ? body : [body];
    if (messages.length > MAX_BATCH) return { status: 200, body: refuseBatch(`holds ${MAX_BATCH} messages at most`) };
    if (messages.filter(isToolList).length > 1) return { status: 200, body: refuseBatch("asks for tools/list once") };
    // The first call goes on the request's own place; each further one takes another.
    const first = messages.findIndex((message) => isToolCall(readMessage(message)));
    const given = await Promise.all(
      messages.map((message, place) => answer(input, readMessage(message), place === first)),
    );
    return toReply(
      given.filter((each) => each !== undefined),
      Array.isArray(body),
    );
  },
});

function isToolCall(incoming: Incoming): boolean {
  return incoming.kind === "request" && incoming.method === "tools/call";
}

function isToolList(message: unknown): boolean {
  const incoming = readMessage(message);
  return incoming.kind === "request" && incoming.method === "tools/list";
}

/** One error for the whole of a batch that is too large, or whose response would be: one a message would multiply it. */
function refuseBatch(rule: string): RpcResponse {
  return rpcError(null, rpcCodes.request, `A batch ${rule}.`);
}

/** The reply over HTTP: 503 when whatever was asked for is away, so that clients and proxies try again. */
function toReply(answers: readonly Answer[], isBatch: boolean): JsonReply {
  const [only] = answers;
  if (only === undefined) return { status: 202 };
  const body = isBatch ? answers.map(({ response }) => response) : only.response;
  if (!answers.every(({ isAway }) => isAway)) return { status: 200, body };
  return { status: 503, body, headers: { "retry-after": "2" } };
}

/** Answers one message; nothing when it asks for nothing. */
async function answer(input: HandlerInput, incoming: Incoming, isAdmitted: boolean): Promise<Answer | undefined> {
  if (incoming.kind === "silent") return undefined;
  if (incoming.kind === "invalid") return { response: rpcError(incoming.id, rpcCodes.request, incoming.message) };
  const { id, method, params } = incoming;
  if (params !== undefined && (typeof params !== "object" || params === null || Array.isArray(params))) {
    return { response: rpcError(id, rpcCodes.params, "params must be an object.") };
  }
  if (method === "tools/call") return answerToolCall(input, { id, params: params ?? {}, isAdmitted });
  if (input.refusal) return { response: refuse(id, input.refusal, input.requestId) };
  switch (method) {
    case "initialize":
      return { response: rpcResult(id, initialize()) };
    case "ping":
      return { response: rpcResult(id, {}) };
    case "tools/list":
      return { response: listTools(input, id, params) };
    default:
      return { response: rpcError(id, rpcCodes.method, "There is no such method.") };
  }
}

function refuse(id: RpcId, error: AppError, requestId: string): RpcResponse {
  return rpcError(id, rpcCodes.refused, error.message, toErrorBody(error, requestId).error);
}

function initialize() {
  return {
    protocolVersion: PROTOCOL_VERSION,
    capabilities: { tools: {} },
    serverInfo: { name: "switchyard", version: apiVersion },
    instructions,
  } satisfies InitializeResult;
}

/** All tools that the key may use, in one page. */
function listTools({ caller }: HandlerInput, id: string | number, params: object = {}): RpcResponse {
  if ("cursor" in params && params.cursor !== undefined) {
    return rpcError(id, rpcCodes.params, "There is no page of this cursor.");
  }
  return rpcResult(id, toolsFor(caller.role));
}

const listings = new Map<Role, ListToolsResult>();

/** The tools of a role. They are the same for every call, and deriving their schemas costs more than any other answer. */
function toolsFor(role: Role): ListToolsResult {
  const known = listings.get(role);
  if (known) return known;
  const tools = allTools
    .filter((each) => hasRole(role, each.role))
    .map(({ name, description, input }) => ({
      name,
      description,
      inputSchema: { ...toJsonSchema(input, "input"), type: "object" as const },
    }));
  const listing = { tools } satisfies ListToolsResult;
  listings.set(role, listing);
  return listing;
}

export const mcpRoutes = [toolServer];
