import type { CallToolResult } from "@modelcontextprotocol/client";
import { workflowStepsQueue } from "../../src/jobs/queues.ts";
import { type AppError, isOfPart } from "../../src/lib/errors.ts";
import type { JobKind } from "../../src/store/job-record.ts";
import { toErrorBody } from "../middleware/errors.ts";
import { apiVersion } from "../middleware/request-id.ts";
import { isObject, RpcFault, type RpcId, type RpcResponse, rpcCodes, rpcResult } from "./json-rpc.ts";
import { type Dialect, isSince, serverInfoKey, statelessRevision } from "./revisions.ts";

export const serverInfo = { name: "switchyard", title: "Switchyard", version: apiVersion };

/** How long a client may keep a list, in ms; it depends on the key, so no other client may have it. */
const LIST_TTL_MS = 60_000;

/** Longest output of a run in a result, in characters. */
const MAX_OUTPUT = 100_000;

/** What a list carries since 2026-07-28 for those that keep it. */
export const cacheHints = (dialect: Pick<Dialect, "revision">) =>
  isSince(dialect, statelessRevision) ? { ttlMs: LIST_TTL_MS, cacheScope: "private" as const } : {};

/** A result as its revision wants it: since 2026-07-28 it says of what type it is, and who made it. */
export function reply(id: RpcId, dialect: Dialect, result: Record<string, unknown>): RpcResponse {
  return rpcResult(id, isSince(dialect, statelessRevision) ? signed(result) : result);
}

const signed = (result: Record<string, unknown>) => ({
  resultType: "complete",
  _meta: { [serverInfoKey]: serverInfo },
  ...result,
});

/**
 * A tool's result as text, plus `structuredContent` for clients that support it. The text of a workflow's run, whose job is of
 * that `kind`, is its output alone.
 */
export function toContent(dialect: Dialect, result: unknown, kind?: JobKind): CallToolResult {
  const value = bounded(result);
  const output = kind === workflowStepsQueue.kind && isObject(value) ? value.output : undefined;
  const text = typeof output === "string" ? output : JSON.stringify(output ?? value);
  const content = [{ type: "text" as const, text }];
  return isSince(dialect, "2025-06-18") && isObject(value) ? { content, structuredContent: value } : { content };
}

/** A result whose output is not longer than a client's model should have to read; all of it stays with the job. */
function bounded(value: unknown): unknown {
  if (!isObject(value) || value.output === undefined) return value;
  const text = typeof value.output === "string" ? value.output : JSON.stringify(value.output);
  if (text.length <= MAX_OUTPUT) return value;
  return { ...value, output: `${text.slice(0, MAX_OUTPUT).toWellFormed()}…`, isOutputCut: true };
}

/** A tool's failure as a result. @throws RpcFault when it is the state of a part of the service. */
export function toFailure(error: AppError, requestId: string): CallToolResult {
  const body = toErrorBody(error, requestId);
  if (isOfPart(error)) throw new RpcFault(rpcCodes.internal, error.message, { data: body.error });
  return { content: [{ type: "text", text: JSON.stringify(body) }], isError: true };
}
