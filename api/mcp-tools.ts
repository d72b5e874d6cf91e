import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { AppError, isOfPart } from "../src/errors.ts";
import { allTools } from "../src/mcp-tools/all-tools.ts";
import type { AnyTool } from "../src/mcp-tools/tool.ts";
import { hasRole } from "../src/tenancy/roles.ts";
import { type RpcId, type RpcResponse, rpcCodes, rpcError, rpcResult } from "./json-rpc.ts";
import { toAppError, toErrorBody } from "./middleware/errors.ts";
import { admitCall } from "./middleware/rate-limit.ts";
import { knownFields, parseInput } from "./middleware/validate.ts";
import { unknownIn } from "./read-input.ts";
import type { HandlerInput } from "./route.ts";

const SURFACE = "mcp";

export type ToolRequest = {
  id: RpcId;
  params: { name?: unknown; arguments?: unknown };
  /** Whether it runs on the rate and the place that its HTTP request took. */
  isAdmitted: boolean;
};

/**
 * Responds to `tools/call`. An unknown tool and wrong arguments are protocol errors (-32602); a failure inside the tool is a
 * result that the model can read. Arguments that the tool does not know are named in `_ignored`.
 */
export async function callTool(input: HandlerInput, { id, params, isAdmitted }: ToolRequest): Promise<RpcResponse> {
  const { name, arguments: sent } = params;
  const tool = allTools.find((each) => each.name === name);
  if (!tool) return rpcError(id, rpcCodes.params, `There is no tool ${JSON.stringify(name)?.slice(0, 100)}.`);
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
    const result = await run(input, tool, given, isAdmitted);
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

async function run(input: HandlerInput, tool: AnyTool, given: unknown, isAdmitted: boolean): Promise<unknown> {
  const { caller, platform, signal, refusal } = input;
  if (refusal) throw refusal;
  if (!hasRole(caller.role, tool.role)) {
    const message = `${tool.name} needs a key with the role ${tool.role}; yours has the role ${caller.role}.`;
    throw new AppError("insufficient_role", message);
  }
  const release = isAdmitted ? undefined : await admitCall(platform.tenancy.limits, caller.tenantId);
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
