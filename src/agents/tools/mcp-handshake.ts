import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { JsonSchemaValidator } from "@modelcontextprotocol/sdk/validation";
import type { Connection, ListedTool, RemoteClient, RemoteResult } from "./mcp-connection.ts";
import { followTask, RefusedByServer, TASK_TIMEOUT_MS, type TaskState } from "./mcp-task.ts";
import type { ToolSetup } from "./tool.ts";

/** A client of the revisions up to 2025-11-25, which begin with `initialize`, by the official SDK. */

const CALL_TIMEOUT_MS = 60_000;
/** Longest time of one request about a task, in ms. */
const REQUEST_TIMEOUT_MS = 15_000;

/**
 * Results are not checked against the schemas that a server gives for them: the model reads a result as text, and a schema's
 * regular expressions could hold up the worker for as long as the server likes.
 */
const unchecked = {
  getValidator<T>(): JsonSchemaValidator<T> {
    return (input) => ({ valid: true, data: input as T, errorMessage: undefined }); // nothing reads it as a T
  },
};

type Options = Parameters<ListedTool["call"]>[1];
type RemoteCall = { name: string; arguments: Record<string, unknown>; _meta: Record<string, unknown> };

/** Connects to a server, until the run has ended. Throws when it cannot be reached, and when it speaks another protocol. */
export async function openHandshake(to: Connection, closeLater: ToolSetup["closeLater"]): Promise<RemoteClient> {
  // Loaded by workers alone, and by runs that need it.
  const { Client: McpClient } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const client = new McpClient({ name: "switchyard", version: "1.0.0" }, { jsonSchemaValidator: unchecked });
  /** Tasks that are followed: closing the client would cut off the request that cancels one. */
  const followed = new Set<Promise<unknown>>();
  closeLater(async () => {
    await Promise.allSettled(followed);
    await client.close();
  });
  const { url, headers, fetch, signal } = to;
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers }, fetch });
  // The SDK's own types disagree with each other under exactOptionalPropertyTypes.
  await client.connect(transport as Parameters<Client["connect"]>[0], { signal });

  const callTask = (request: RemoteCall, options: Options) => {
    const result = resultOfTask(client, request, options);
    followed.add(result);
    result.catch(() => undefined).finally(() => followed.delete(result));
    return result;
  };
  return {
    /** A tool that only makes tasks is followed as a task. */
    async list(cursor, signal) {
      const { tools, nextCursor } = await client.listTools(cursor === undefined ? {} : { cursor }, { signal });
      const listed = tools.map((tool): ListedTool => {
        const isTask = tool.execution?.taskSupport === "required";
        return {
          ...tool,
          timeoutMs: isTask ? TASK_TIMEOUT_MS : CALL_TIMEOUT_MS,
          call(given, options) {
            const request = { name: tool.name, arguments: given, _meta: options.meta };
            return isTask ? callTask(request, options) : callPlainly(client, request, options);
          },
        };
      });
      return { tools: listed, nextCursor };
    },
  };
}

async function callPlainly(client: Client, request: RemoteCall, { signal }: Options): Promise<RemoteResult> {
  const options = { signal, timeout: CALL_TIMEOUT_MS, maxTotalTimeout: CALL_TIMEOUT_MS };
  return (await client.callTool(request, undefined, options)) as RemoteResult;
}

/** The result of a call that becomes a task, or the error that it ended with. */
async function resultOfTask(client: Client, request: RemoteCall, { signal }: Options): Promise<RemoteResult> {
  const { CallToolResultSchema, CreateTaskResultSchema, McpError, ErrorCode } = await import(
    "@modelcontextprotocol/sdk/types.js"
  );
  const { tasks } = client.experimental;
  const within = (signal: AbortSignal) => ({ signal, timeout: REQUEST_TIMEOUT_MS });
  /** A response that is an error, unlike one that did not come in time or whose connection broke. */
  const isRefusal = (error: unknown) =>
    error instanceof McpError && error.code !== ErrorCode.RequestTimeout && error.code !== ErrorCode.ConnectionClosed;
  const asked = { method: "tools/call" as const, params: request };
  const task = { ttl: 2 * TASK_TIMEOUT_MS };
  const { task: created } = await client.request(asked, CreateTaskResultSchema, { ...within(signal), task });
  const { taskId } = created;
  const ended = await followTask(
    {
      created: toState(created),
      read: (signal) =>
        tasks.getTask(taskId, within(signal)).then(toState, (error) => {
          throw isRefusal(error) ? new RefusedByServer(error.message) : error;
        }),
      cancel: (signal) => tasks.cancelTask(taskId, within(signal)),
    },
    signal,
  );
  if (ended.status === "cancelled") throw new Error(ended.message ?? "The task is cancelled.");
  // Of a task that failed too, the result says why.
  return await tasks.getTaskResult(taskId, CallToolResultSchema, within(signal)).catch((error: unknown) => {
    throw ended.status === "failed" && ended.message ? new Error(ended.message) : error;
  });
}

type RemoteTask = {
  status: TaskState["status"];
  pollInterval?: number | undefined;
  statusMessage?: string | undefined;
};

const toState = ({ status, pollInterval: pollMs, statusMessage: message }: RemoteTask) => ({ status, pollMs, message });
