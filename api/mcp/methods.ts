import { type AppError, isOfPart } from "../../src/lib/errors.ts";
import type { JobRecord } from "../../src/store/job-record.ts";
import { toAppError, toErrorBody } from "../middleware/errors.ts";
import type { HandlerInput } from "../route.ts";
import { callTool } from "./call-tool.ts";
import { RpcFault, rpcCodes } from "./json-rpc.ts";
import { cacheHints, serverInfo } from "./results.ts";
import { agreeOn, type Dialect, isSince, type Revision, revisions, statelessRevision } from "./revisions.ts";
import { cancelTask, getTask, requireTasks, taskCapabilities, updateTask } from "./tasks.ts";
import { pageFor } from "./tool-list.ts";

export type McpRequest = {
  method: string;
  params: Readonly<Record<string, unknown>>;
  dialect: Dialect;
  /** Whether it runs on the rate and the place that its HTTP request took. */
  isAdmitted: boolean;
  /** Is given the job of a tool's call, at each change. */
  onJob?: ((job: JobRecord) => void) | undefined;
};

type Method = {
  /** The first and the last revision that have it; default: all. */
  since?: Revision;
  until?: Revision;
  run(input: HandlerInput, request: McpRequest): Promise<Record<string, unknown>> | Record<string, unknown>;
};

const instructions =
  "Switchyard: models of several providers behind one gateway, search over the documents of your tenant, your tenant's " +
  "agents, and patterns of several models. Tools return JSON as text. A long run returns a task or a jobId: follow it by " +
  "svc_job, or over HTTP at its statusUrl with the same key.";

/** Every method, but for `tasks/result` of 2025-11-25, which responds with a stream. */
const methods: Readonly<Record<string, Method>> = {
  initialize: { until: "2025-11-25", run: (_, { params }) => greet(params.protocolVersion) },
  ping: { until: "2025-11-25", run: () => ({}) },
  "server/discover": { since: statelessRevision, run: discover },
  "tools/list": { run: listTools },
  "tools/call": { run: callTool },
  "tasks/get": { since: "2025-11-25", run: ofTask(getTask) },
  "tasks/cancel": { since: "2025-11-25", run: ofTask(cancelTask) },
  "tasks/update": { since: statelessRevision, run: ofTask(updateTask) },
};

/** The result of a request. @throws RpcFault an error of the protocol. */
export async function resultOf(input: HandlerInput, request: McpRequest): Promise<Record<string, unknown>> {
  const { method, dialect } = request;
  // A tool's call reports the refusal of its caller as the result of the tool.
  if (input.rejection && method !== "tools/call") throw refuse(input.rejection, input.requestId);
  const found = Object.hasOwn(methods, method) ? methods[method] : undefined;
  const { since = "2024-11-05", until = statelessRevision } = found ?? {};
  if (!found || !isSince(dialect, since) || dialect.revision > until) {
    const status = isSince(dialect, statelessRevision) ? 404 : 200;
    throw new RpcFault(rpcCodes.method, "There is no such method.", { status });
  }
  return found.run(input, request);
}

/** The error of a caller that is over its limits. */
export const refuse = (error: AppError, requestId: string) =>
  new RpcFault(rpcCodes.refused, error.message, { data: toErrorBody(error, requestId).error });

/** An error of the protocol, or of a part of the service that is unavailable. Throws any other. */
export function toFault(thrown: unknown, requestId: string): RpcFault {
  if (thrown instanceof RpcFault) return thrown;
  const error = toAppError(thrown);
  if (!isOfPart(error)) throw thrown;
  return new RpcFault(rpcCodes.internal, error.message, { data: toErrorBody(error, requestId).error });
}

function ofTask(run: Method["run"]): Method["run"] {
  return (input, request) => {
    requireTasks(request.dialect);
    return run(input, request);
  };
}

function greet(offered: unknown) {
  const protocolVersion = agreeOn(offered);
  const capabilities = { tools: {}, ...taskCapabilities({ revision: protocolVersion }) };
  return { protocolVersion, capabilities, serverInfo, instructions };
}

/** What 2026-07-28 has in the place of `initialize`. */
function discover(_: HandlerInput, { dialect }: McpRequest) {
  const capabilities = { tools: {}, ...taskCapabilities(dialect) };
  return { supportedVersions: revisions, capabilities, instructions, ...cacheHints(dialect) };
}

async function listTools(input: HandlerInput, { params, dialect }: McpRequest) {
  const page = await input.inTurn(() => pageFor(input, dialect, params.cursor));
  if (page === null) throw new RpcFault(rpcCodes.params, "There is no page of this cursor.");
  return { ...page, ...cacheHints(dialect) };
}
