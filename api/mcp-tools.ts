import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { AppError } from "../src/errors.ts";
import { type Caller, hasRole } from "../src/tenancy/roles.ts";
import { allTools } from "../src/tools/all-tools.ts";
import type { AnyTool } from "../src/tools/tool.ts";
import { type RpcResponse, rpcCodes, rpcError, rpcResult } from "./json-rpc.ts";
import { toAppError, toErrorBody } from "./middleware/errors.ts";
import { admitCall } from "./middleware/rate-limit.ts";
import { parseInput } from "./middleware/validate.ts";
import type { HandlerInput } from "./route.ts";

const SURFACE = "mcp";

export type ToolRequest = {
  id: string | number;
  params: object;
  /** Whether it goes on the rate and the place that its HTTP request took. */
  isAdmitted: boolean;
};

/** An answer; `isAway` tells that a needed part is down. */
export type Answer = { response: RpcResponse; isAway?: boolean };

/**
 * Answers `tools/call`. A tool or arguments that cannot be are the caller's mistake in the protocol (-32602); whatever
 * happens in the tool is a result that the model can read.
 */
export async function answerToolCall(input: HandlerInput, request: ToolRequest): Promise<Answer> {
  const { id, params } = request;
  const name = "name" in params ? params.name : undefined;
  const tool = allTools.find((each) => each.name === name);
  if (!tool)
    return { response: rpcError(id, rpcCodes.params, `There is no tool ${JSON.stringify(name)?.slice(0, 100)}.`) };
  let given: unknown;
  try {
    given = parseInput(tool.input, ("arguments" in params ? params.arguments : undefined) ?? {}, "arguments");
  } catch (error) {
    const { message, details } = toAppError(error);
    return { response: rpcError(id, rpcCodes.params, message, details) };
  }
  const startedAt = performance.now();
  const log = input.platform.logger.child({ requestId: input.requestId, tool: tool.name });
  try {
    const result = await run(input, tool, given, request.isAdmitted);
    log.info({ ms: Math.round(performance.now() - startedAt) }, "a tool was called");
    return { response: rpcResult(id, toContent(result)) };
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
