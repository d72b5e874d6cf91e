import { paramHeadersOf } from "../../src/definitions/published-tools.ts";
import { toAcceptedView } from "../../src/jobs/job-outcome.ts";
import { AppError } from "../../src/lib/errors.ts";
import { allTools } from "../../src/mcp-tools/all-tools.ts";
import { findPublished } from "../../src/mcp-tools/published.ts";
import { type AnyTool, resultOf, waitForJob } from "../../src/mcp-tools/tool.ts";
import type { JobKind, JobRecord } from "../../src/store/job-record.ts";
import { isFinal } from "../../src/store/job-state.ts";
import { hasRole, rootOf } from "../../src/tenancy/roles.ts";
import { toAppError } from "../middleware/errors.ts";
import { admitCall } from "../middleware/rate-limit.ts";
import { findUnknown } from "../middleware/unknown-fields.ts";
import { formatPath, readInput } from "../middleware/validate.ts";
import type { HandlerInput } from "../route.ts";
import type { Question } from "./approval-forms.ts";
import { isObject, RpcFault, rpcCodes } from "./json-rpc.ts";
import { questionFor, resumeCall, toAsking } from "./pending-call.ts";
import { toContent, toFailure } from "./results.ts";
import { type Dialect, isSince, requireHeader, statelessRevision } from "./revisions.ts";
import { takesTask, toCreated } from "./tasks.ts";

export const SURFACE = "mcp";

export type ToolRequest = {
  dialect: Dialect;
  params: Readonly<Record<string, unknown>>;
  /** Whether it runs on the rate and the place that its HTTP request took. */
  isAdmitted: boolean;
  /** Is given the job of the call, at each change. */
  onJob?: ((job: JobRecord) => void) | undefined;
};

/**
 * Calls a tool. One whose job takes long returns a task where the client knows tasks, else the ids of the job. A failure inside the tool is a result that the model can read; arguments that the tool does not know are named
 * in `_ignored`.
 * @throws RpcFault `params` for an unknown tool and wrong arguments; `internal` when a part of the service is unavailable.
 */
export async function callTool(input: HandlerInput, request: ToolRequest): Promise<Record<string, unknown>> {
  const { dialect, params } = request;
  const tool = await findTool(input, params.name);
  if (!tool) throw new RpcFault(rpcCodes.params, "There is no tool of this name; tools/list has them all.");
  const { given, ignored } = readArguments(tool, params.arguments ?? {});
  if (isSince(dialect, statelessRevision)) requireParamHeaders(input, tool, given);
  const startedAt = performance.now();
  const log = input.platform.logger.child({ requestId: input.requestId, tool: tool.name });
  const elapsed = () => Math.round(performance.now() - startedAt);
  try {
    const outcome = await runTool(input, { tool, given, request });
    log.info({ ms: elapsed() }, "a tool was called");
    if ("question" in outcome) return toAsking(outcome.job, outcome.question);
    if ("job" in outcome) return toCreated(dialect, outcome.job);
    const { result, kind } = outcome;
    return toContent(dialect, ignored.length === 0 ? result : { ...Object(result), _ignored: ignored }, kind);
  } catch (thrown) {
    if (thrown instanceof RpcFault) throw thrown;
    const error = toAppError(thrown);
    if (error.code === "internal") log.error({ err: error.cause ?? error }, "a tool failed");
    else log.info({ code: error.code, ms: elapsed() }, "a tool was called");
    return toFailure(error, input.requestId);
  }
}

/** The tool of a name: one of the product's, or of the tenant's own. */
async function findTool({ platform, caller }: HandlerInput, name: unknown): Promise<AnyTool | undefined> {
  if (typeof name !== "string") return undefined;
  return allTools.find((each) => each.name === name) ?? findPublished(platform, caller, name);
}

/** @throws RpcFault `headerMismatch` unless the headers repeat the arguments that the tool's schema says. */
function requireParamHeaders(input: HandlerInput, { inputSchema }: AnyTool, given: unknown): void {
  if (inputSchema === undefined) return;
  for (const { header, path } of paramHeadersOf(JSON.parse(inputSchema))) {
    const value = path.reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), given);
    if (value !== undefined && value !== null) requireHeader(input, `mcp-param-${header}`, String(value));
  }
}

/** The arguments as the tool takes them, and the names of those that it does not know. @throws RpcFault that names each problem. */
function readArguments(tool: AnyTool, sent: unknown): { given: unknown; ignored: readonly string[] } {
  try {
    const { data: given, ignored } = readInput(tool.input, sent, "arguments");
    return { given, ignored: ignored.map((path) => formatPath(path)) };
  } catch (error) {
    const { message, details } = toAppError(error);
    const unknown = findUnknown(tool.input, sent).map(({ path }) => ({
      in: "arguments",
      path: formatPath(path).slice(0, 64),
      message: "is unknown",
    }));
    throw new RpcFault(rpcCodes.params, message, { data: [...(Array.isArray(details) ? details : []), ...unknown] });
  }
}

/** A result, with the kind of the job that made it, or the job that continues, or awaits a decision. */
type Outcome = { result: unknown; kind?: JobKind } | { job: JobRecord; question: Question } | { job: JobRecord };

type Call = { tool: AnyTool; given: unknown; request: ToolRequest };

async function runTool(input: HandlerInput, called: Call): Promise<Outcome> {
  const { tool, given, request } = called;
  const { caller, platform, signal, rejection } = input;
  if (rejection) throw rejection;
  if (!hasRole(caller.role, tool.role)) {
    const message = `${tool.name} needs a key with the role ${tool.role}; yours has the role ${caller.role}.`;
    throw new AppError("insufficient_role", message);
  }
  const release = request.isAdmitted ? undefined : await admitCall(platform.tenancy.limits, caller);
  try {
    const call = { platform, caller, surface: SURFACE, signal, onJob: request.onJob };
    // The tool's own schema made the arguments, so they have the types that it declared.
    const { start } = tool;
    if (!start) return { result: await tool.run?.(call, given as never) };
    const asked = await resumeCall(input, called);
    const begin = () => start(call, given as never).catch(rejectArguments(tool));
    const started = asked?.job ?? (await platform.jobs.inTurn(rootOf(caller), begin));
    const taking = takesTask(request);
    if (taking === "now") return { job: started };
    const job = asked?.isLeft ? started : await waitForJob(call, started);
    if (isFinal(job.status)) return { result: resultOf(job), kind: job.kind };
    if (taking !== undefined) return { job };
    const question = asked?.isLeft ? null : await questionFor(input, called, job);
    return question ? { job, question } : { result: toAcceptedView(job) };
  } finally {
    release?.();
  }
}

/** Turns the refusal of a run's input into that of the arguments which it was. */
const rejectArguments = (tool: AnyTool) => (error: unknown) => {
  const isInput = error instanceof AppError && error.code === "invalid_request" && error.param?.startsWith("input");
  if (!isInput || tool.inputSchema === undefined) throw error;
  const path = (error.param ?? "").replace(/^input\.?/, "");
  const data = [{ in: "arguments", path, message: error.message }];
  throw new RpcFault(rpcCodes.params, path === "" ? error.message : `${path}: ${error.message}`, { data });
};
