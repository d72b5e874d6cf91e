import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { JsonSchemaValidator } from "@modelcontextprotocol/sdk/validation";
import {
  type Connection,
  type ListedTool,
  type RemoteClient,
  type RemoteResult,
  readTools,
  remoteResultSchema,
  toolPageSchema,
} from "./mcp-connection.ts";
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
  /** Tasks that are followed: closing the client would cut off the request that cancels one. */
  const followed = new Set<Promise<unknown>>();
  const { inSession, client } = await openSessions(to, (close) =>
    closeLater(async () => {
      await Promise.allSettled(followed);
      await close();
    }),
  );

  const callTask = (request: RemoteCall, options: Options) => {
    const result = inSession((client) => resultOfTask(client, request, options), options.signal);
    followed.add(result);
    result.catch(() => undefined).finally(() => followed.delete(result));
    return result;
  };
  return {
    /** A tool that only makes tasks is followed as a task. */
    async list(cursor, signal) {
      // Not the SDK's own method: to that, one tool that does not fit its schema spoils all of them.
      const asked = { method: "tools/list" as const, params: cursor === undefined ? {} : { cursor } };
      const page = await client.request(asked, toolPageSchema, { signal });
      const { tools, hidden } = readTools(page.tools);
      const listed = tools.map((tool): ListedTool => {
        const isTask = tool.execution?.taskSupport === "required";
        return {
          ...tool,
          timeoutMs: isTask ? TASK_TIMEOUT_MS : CALL_TIMEOUT_MS,
          call(given, options) {
            const request = { name: tool.name, arguments: given, _meta: options.meta };
            if (isTask) return callTask(request, options);
            return inSession((client) => callPlainly(client, request, options), options.signal);
          },
        };
      });
      return { tools: listed, hidden, nextCursor: page.nextCursor };
    },
  };
}

/**
 * The sessions of a run with a server, one after the other: a server may end one, as when it starts again, and answers 404 from
 * then on (specification, "Session Management"). The call that meets this is made again in a new one, once.
 */
async function openSessions({ url, headers, fetch, signal }: Connection, closeLater: ToolSetup["closeLater"]) {
  // Loaded by workers alone, and by runs that need it.
  const { Client: McpClient } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const open = async (signal: AbortSignal) => {
    const client = new McpClient({ name: "switchyard", version: "1.0.0" }, { jsonSchemaValidator: unchecked });
    closeLater(() => client.close());
    const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers }, fetch });
    // The SDK's own types disagree with each other under exactOptionalPropertyTypes.
    await client.connect(transport as Parameters<Client["connect"]>[0], { signal });
    return { client, hasEnded: (error: unknown) => transport.sessionId !== undefined && Object(error).code === 404 };
  };
  let current = open(signal);
  const inSession = async <T>(work: (client: Client) => Promise<T>, signal: AbortSignal): Promise<T> => {
    const mine = current;
    const { client, hasEnded } = await mine;
    try {
      return await work(client);
    } catch (error) {
      if (!hasEnded(error)) throw error;
      if (current === mine) {
        current = open(AbortSignal.any([signal, AbortSignal.timeout(REQUEST_TIMEOUT_MS)]));
        current.catch(() => undefined); // those that wait for it throw it
      }
      return await work((await current).client);
    }
  };
  return { inSession, client: (await current).client };
}

async function callPlainly(client: Client, request: RemoteCall, { signal }: Options): Promise<RemoteResult> {
  const options = { signal, timeout: CALL_TIMEOUT_MS, maxTotalTimeout: CALL_TIMEOUT_MS };
  return client.request({ method: "tools/call", params: request }, remoteResultSchema, options);
}

/** The result of a call that becomes a task, or the error that it ended with. */
async function resultOfTask(client: Client, request: RemoteCall, { signal }: Options): Promise<RemoteResult> {
  const { CreateTaskResultSchema, McpError, ErrorCode } = await import("@modelcontextprotocol/sdk/types.js");
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
  return await tasks.getTaskResult(taskId, remoteResultSchema, within(signal)).catch((error: unknown) => {
    throw ended.status === "failed" && ended.message ? new Error(ended.message) : error;
  });
}

type RemoteTask = {
  status: TaskState["status"];
  pollInterval?: number | undefined;
  statusMessage?: string | undefined;
};

const toState = ({ status, pollInterval: pollMs, statusMessage: message }: RemoteTask) => ({ status, pollMs, message });
