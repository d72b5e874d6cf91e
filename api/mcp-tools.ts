import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { AppError } from "../src/errors.ts";
import { allTools } from "../src/mcp-tools/all-tools.ts";
import type { AnyTool } from "../src/mcp-tools/tool.ts";
import { type Caller, hasRole } from "../src/tenancy/roles.ts";
import { type RpcResponse, rpcCodes, rpcError, rpcResult } from "./json-rpc.ts";
import { toAppError, toErrorBody } from "./middleware/errors.ts";
import { admitCall } from "./middleware/rate-limit.ts";
import { knownFields, parseInput } from "./middleware/validate.ts";
import { unknownIn } from "./read-input.ts";
import type { HandlerInput } from "./route.ts";

const SURFACE = "mcp";

export type ToolRequest = {
  id: string | number;
  params: object;
  /** Whether it goes on the rate and the place that its HTTP request took. */
  isAdmitted: boolean;
};

/** A response; `isAway`: a needed part is unavailable. */
export type Answer = { response: RpcResponse; isAway?: boolean };

/**
 * Answers `tools/call`. An unknown tool and wrong arguments are the caller's mistake in the protocol (-32602); whatever
 * happens in the tool is a result that the model can read. Arguments that the tool does not know are named in `_ignored`.
 */
export async function answerToolCall(input: HandlerInput, request: ToolRequest): Promise<Answer> {
  const { id, params } = request;
  const name = "name" in params ? params.name : undefined;
  const tool = allTools.find((each) => each.name === name);
  if (!tool)
    return { response: rpcError(id, rpcCodes.params, `There is no tool ${JSON.stringify(name)?.slice(0, 100)}.`) };
  const sent = ("arguments" in params ? params.arguments : undefined) ?? {};
  const ignored = unknownIn(sent, knownFields(tool.input));
  let given: unknown;
  try {
    given = parseInput(tool.input, sent, "arguments");
  } catch (error) {
    const { message, details } = toAppError(error);
    const unknown = ignored.map((name) => ({ in: "arguments", path: name.slice(0, 64), message: "is unknown" }));
    return {
      response: rpcError(id, rpcCodes.params, message, [...(Array.isArray(details) ? details : []), ...unknown]),
    };
  }
  const startedAt = performance.now();
  const log = input.platform.logger.child({ requestId: input.requestId, tool: tool.name });
  try {
    const result = await run(input, tool, given, request.isAdmitted);
    log.info({ ms: Math.round(performance.now() - startedAt) }, "a tool was called");
    return {
      response: rpcResult(id, toContent(ignored.length === 0 ? result : { ...Object(result), _ignored: ignored })),
    };
  } catch (thrown) {
    const error = toAppError(thrown);
    if (error.code === "internal") log.error({ err: error.cause ?? error }, "a tool failed");
    else log.info({ code: error.code, ms: Math.round(performance.now() - startedAt) }, "a tool was called");
    const body = toErrorBody(error, input.requestId);
    if (error.code === "unavailable") {
      return { response: rpcError(id, rpcCodes.internal, error.message, body.error), isAway: true };
    }
    return { response: rpcResult(id, { ...toContent(body), isError: true }) };
  }
}

async function run(input: HandlerInput, tool: AnyTool, given: unknown, isAdmitted: boolean): Promise<unknown> {
  const { caller, platform, signal, refusal } = input;
  if (refusal) throw refusal;
  refuseRole(tool, caller);
  const release = isAdmitted ? undefined : await admitCall(platform.tenancy.limits, caller.tenantId);
  try {
    // The tool's own schema made the arguments, so they have the types that it declared.
    return await tool.run({ platform, caller, surface: SURFACE, signal }, given as never);
  } finally {
    release?.();
  }
}

function refuseRole({ name, role }: AnyTool, caller: Caller): void {
  if (hasRole(caller.role, role)) return;
  throw new AppError(
    "insufficient_role",
    `${name} needs a key with the role ${role}; yours has the role ${caller.role}.`,
  );
}

/** This revision knows no structured content: JSON goes as text. */
function toContent(value: unknown) {
  return { content: [{ type: "text", text: JSON.stringify(value) }] } satisfies CallToolResult;
}
