import type { CallToolResult, InitializeResult, Tool } from "@modelcontextprotocol/sdk/types.js";
import { AppError, isOfPart } from "../src/errors.ts";
import { toJsonSchema } from "../src/json-schema.ts";
import { allTools } from "../src/mcp-tools/all-tools.ts";
import type { AnyTool } from "../src/mcp-tools/tool.ts";
import { hasRole } from "../src/tenancy/roles.ts";
import {
  type Incoming,
  isUnavailable,
  type RpcId,
  type RpcResponse,
  readMessage,
  rpcBodySchema,
  rpcCodes,
  rpcError,
  rpcErrorSchema,
  rpcFailureSchema,
  rpcReplySchema,
  rpcResult,
} from "./json-rpc.ts";
import { toAppError, toErrorBody } from "./middleware/errors.ts";
import { admitCall } from "./middleware/rate-limit.ts";
import { apiVersion } from "./middleware/request-id.ts";
import { knownFields, parseInput } from "./middleware/validate.ts";
import { unknownIn } from "./read-input.ts";
import { declareRoutes, type HandlerInput, type JsonReply, type RouteEnvelope } from "./route.ts";

/** The only revision that we speak, whatever the client offers (modelcontextprotocol.io/specification/2024-11-05). */
const PROTOCOL_VERSION = "2024-11-05";
const MAX_BATCH = 50;
const SURFACE = "mcp";

const instructions =
  "Switchyard: models of several providers behind one gateway, search over the documents of your tenant, your tenant's " +
  "agents, and patterns of several models. Tools return JSON as text. A long run returns a jobId: follow it by " +
  "svc_job, or over HTTP at its statusUrl with the same key.";

/** Bodies that cannot be read, and callers over their limits, get errors of the protocol; our other errors keep their shape. */
const envelope: RouteEnvelope = {
  toReply(error, requestId) {
    const { code, type, message, details } = error;
    if (type === "rate_limit_error") return { status: 200, body: reject(null, error, requestId) };
    if (type !== "invalid_request_error") return undefined;
    const rpcCode = code === "invalid_request" ? rpcCodes.request : rpcCodes.parse;
    return { status: 400, body: rpcError(null, rpcCode, message, details) };
  },
};

export const toolServer = declareRoutes({ auth: "member", tags: ["Tool server"] }).post("/mcp", {
  summary: "The tool server: JSON-RPC 2.0 as the Model Context Protocol speaks it, revision 2024-11-05",
  description:
    "`initialize`, `ping`, `tools/list` and `tools/call`, single or in batches. Every valid request gets a 200, also " +
    "when its result is an error; notifications a 202. A failed tool call is a result with `isError: true`. " +
    "A batch holds 50 messages at most. A caller over its limits is refused inside a 200, with the id null when its body is " +
    "larger than 16 KiB. No session is kept: any process can respond. A foreign `Host` or `Origin` is a 403.",
  body: rpcBodySchema,
  bodyLimit: "tools",
  envelope,
  responses: {
    200: { description: "The response, or the responses of a batch", body: rpcReplySchema },
    202: { description: "Only notifications or responses: nothing to return" },
    400: { description: "The body is not JSON-RPC", body: rpcErrorSchema },
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
    const isBatch = Array.isArray(body);
    const messages = (isBatch ? body : [body]).slice(0, MAX_BATCH + 1).map(readMessage);
    if (messages.length > MAX_BATCH) return rejectBatch(`holds ${MAX_BATCH} messages at most`);
    const methods = messages.map((message) => (message.kind === "request" ? message.method : undefined));
    if (methods.filter((method) => method === "tools/list").length > 1) return rejectBatch("asks for tools/list once");
    // The first call runs on the request's own place; each further one takes another.
    const first = methods.indexOf("tools/call");
    const given = await Promise.all(messages.map((message, place) => respond(input, message, place === first)));
    const responses = given.filter((each) => each !== undefined);
    if (responses.length === 0) return { status: 202 };
    const reply = { status: 200, body: isBatch ? responses : responses[0] };
    // 503 when whatever was asked for is unavailable, so that clients and proxies try again.
    return responses.every(isUnavailable) ? { ...reply, status: 503, headers: { "retry-after": "2" } } : reply;
  },
});

/** One error for the whole of a batch that is too large, or whose response would be: one for each message would multiply it. */
function rejectBatch(rule: string): JsonReply {
  return { status: 200, body: rpcError(null, rpcCodes.request, `A batch ${rule}.`) };
}

/** The response to one message; undefined for one that needs none. */
async function respond(input: HandlerInput, incoming: Incoming, isAdmitted: boolean): Promise<RpcResponse | undefined> {
  if (incoming.kind === "silent") return undefined;
  if (incoming.kind === "invalid") return rpcError(incoming.id, rpcCodes.request, incoming.message);
  const { id, method, params = {} } = incoming;
  if (typeof params !== "object" || params === null || Array.isArray(params)) {
    return rpcError(id, rpcCodes.params, "params must be an object.");
  }
  if (method === "tools/call") return callTool(input, { id, params, isAdmitted });
  if (input.rejection) return reject(id, input.rejection, input.requestId);
  switch (method) {
    case "initialize":
      return rpcResult(id, greeting);
    case "ping":
      return rpcResult(id, {});
    case "tools/list":
      return listTools(input, id, params);
    default:
      return rpcError(id, rpcCodes.method, "There is no such method.");
  }
}

function reject(id: RpcId, error: AppError, requestId: string): RpcResponse {
  return rpcError(id, rpcCodes.refused, error.message, toErrorBody(error, requestId).error);
}

const greeting = {
  protocolVersion: PROTOCOL_VERSION,
  capabilities: { tools: {} },
  serverInfo: { name: "switchyard", version: apiVersion },
  instructions,
} satisfies InitializeResult;

/** All tools that the key may use, in one page. */
function listTools({ caller }: HandlerInput, id: RpcId, params: object): RpcResponse {
  if ("cursor" in params && params.cursor !== undefined) {
    return rpcError(id, rpcCodes.params, "There is no page of this cursor.");
  }
  listed ??= allTools.map(describeTool);
  return rpcResult(id, { tools: listed.filter(({ role }) => hasRole(caller.role, role)).map(({ shown }) => shown) });
}

/** Made at the first listing: deriving the schemas costs more than any other response. */
let listed: ReturnType<typeof describeTool>[] | undefined;

function describeTool({ name, description, input, role }: AnyTool) {
  const inputSchema = { ...toJsonSchema(input, "input"), type: "object" as const };
  return { role, shown: { name, description, inputSchema } satisfies Tool };
}

type ToolRequest = {
  id: RpcId;
  params: { name?: unknown; arguments?: unknown };
  /** Whether it runs on the rate and the place that its HTTP request took. */
  isAdmitted: boolean;
};

/**
 * Responds to `tools/call`. An unknown tool and wrong arguments are protocol errors (-32602); a failure inside the tool is a
 * result that the model can read. Arguments that the tool does not know are named in `_ignored`.
 */
async function callTool(input: HandlerInput, { id, params, isAdmitted }: ToolRequest): Promise<RpcResponse> {
  const { name, arguments: sent } = params;
  const tool = allTools.find((each) => each.name === name);
  if (!tool) return rpcError(id, rpcCodes.params, "There is no tool of this name; tools/list has them all.");
  const ignored = unknownIn(sent ?? {}, knownFields(tool.input));
  let given: unknown;
  try {
    given = parseInput(tool.input, sent ?? {}, "arguments");
  } catch (error) {
    const { message, details } = toAppError(error);
    const unknown = ignored.map((field) => ({ in: "arguments", path: field.slice(0, 64), message: "is unknown" }));
    return rpcError(id, rpcCodes.params, message, [...(Array.isArray(details) ? details : []), ...unknown]);
  }
  const startedAt = performance.now();
  const log = input.platform.logger.child({ requestId: input.requestId, tool: tool.name });
  const elapsed = () => Math.round(performance.now() - startedAt);
  try {
    const result = await runTool(input, tool, given, isAdmitted);
    log.info({ ms: elapsed() }, "a tool was called");
    return rpcResult(id, toContent(ignored.length === 0 ? result : { ...Object(result), _ignored: ignored }));
  } catch (thrown) {
    const error = toAppError(thrown);
    if (error.code === "internal") log.error({ err: error.cause ?? error }, "a tool failed");
    else log.info({ code: error.code, ms: elapsed() }, "a tool was called");
    const body = toErrorBody(error, input.requestId);
    if (isOfPart(error)) return rpcError(id, rpcCodes.internal, error.message, body.error);
    return rpcResult(id, { ...toContent(body), isError: true });
  }
}

async function runTool(input: HandlerInput, tool: AnyTool, given: unknown, isAdmitted: boolean): Promise<unknown> {
  const { caller, platform, signal, rejection } = input;
  if (rejection) throw rejection;
  if (!hasRole(caller.role, tool.role)) {
    const message = `${tool.name} needs a key with the role ${tool.role}; yours has the role ${caller.role}.`;
    throw new AppError("insufficient_role", message);
  }
  const release = isAdmitted ? undefined : await admitCall(platform.tenancy.limits, caller);
  try {
    // The tool's own schema made the arguments, so they have the types that it declared.
    return await tool.run({ platform, caller, surface: SURFACE, signal }, given as never);
  } finally {
    release?.();
  }
}

/** This revision knows no structured content: JSON is sent as text. */
function toContent(value: unknown) {
  return { content: [{ type: "text", text: JSON.stringify(value) }] } satisfies CallToolResult;
}
