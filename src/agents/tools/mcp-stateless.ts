import { createParser } from "eventsource-parser";
import { z } from "zod";
import { checkToolSchema, paramHeadersOf } from "../../published-tools.ts";
import {
  type Connection,
  type ListedTool,
  type RemoteClient,
  type RemoteResult,
  type RemoteTool,
  readTools,
  remoteResultSchema,
  toolPageSchema,
} from "./mcp-connection.ts";
import { followTask, RefusedByServer, TASK_TIMEOUT_MS, taskStates } from "./mcp-task.ts";

/** A client of MCP 2026-07-28 (modelcontextprotocol.io/specification/2026-07-28), as far as agents need one: its tools and tasks. */

const REVISION = "2026-07-28";
const TASKS = "io.modelcontextprotocol/tasks";

const meta = {
  "io.modelcontextprotocol/protocolVersion": REVISION,
  "io.modelcontextprotocol/clientInfo": { name: "switchyard", version: "1.0.0" },
  "io.modelcontextprotocol/clientCapabilities": { extensions: { [TASKS]: {} } },
};

const taskSchema = z.looseObject({
  taskId: z.string(),
  status: z.enum(taskStates),
  statusMessage: z.string().optional(),
  pollIntervalMs: z.number().optional(),
  result: remoteResultSchema.optional(),
  error: z.looseObject({ message: z.string() }).optional(),
});
const responseSchema = z.looseObject({
  result: z.looseObject({}).optional(),
  error: z
    .looseObject({
      code: z.number(),
      message: z.string(),
      data: z.looseObject({ supported: z.unknown() }).optional().catch(undefined),
    })
    .optional(),
});

type Post = (
  method: string,
  params: Readonly<Record<string, unknown>>,
  options: { signal: AbortSignal; headers?: Readonly<Record<string, string>> },
) => Promise<z.output<typeof responseSchema> | null>;

/** A client of a server that speaks 2026-07-28; null for one that does not. Throws when the server cannot be reached. */
export async function openStateless({ url, headers, fetch, signal }: Connection): Promise<RemoteClient | null> {
  const post = makePost({ url, headers, fetch });
  const discover = () => post("server/discover", {}, { signal });
  const first = await discover();
  // A server may refuse the first request and name our revision as one that it speaks: it is asked once more.
  const found = includesOurs(first?.error?.data?.supported) ? await discover() : first;
  if (!includesOurs(found?.result?.supportedVersions)) return null;
  const request = async (...given: Parameters<Post>) => {
    const response = await post(...given);
    if (response?.error) throw new RefusedByServer(response.error.message);
    if (!response?.result) throw new Error("The server's answer is no response of JSON-RPC.");
    return response.result;
  };
  /** The result of a tool, also when its server makes a task of the call. */
  const call = async (tool: RemoteTool, ...[given, { signal, meta: more }]: Parameters<ListedTool["call"]>) => {
    const params = { name: tool.name, arguments: given, _meta: more };
    const result = await request("tools/call", params, { signal, headers: toParamHeaders(tool, given) });
    return result.resultType === "task" ? resultOfTask(request, taskSchema.parse(result), signal) : toResult(result);
  };
  return {
    /** Tools whose headers cannot be determined are left out. */
    async list(cursor, signal) {
      const page = toolPageSchema.parse(
        await request("tools/list", cursor === undefined ? {} : { cursor }, { signal }),
      );
      const { tools, hidden } = readTools(page.tools);
      const listed = tools
        .filter(hasClearHeaders)
        .map((tool): ListedTool => ({ ...tool, timeoutMs: TASK_TIMEOUT_MS, call: (...given) => call(tool, ...given) }));
      const unclear = tools.filter((tool) => !hasClearHeaders(tool)).map(({ name }) => name);
      return { tools: listed, hidden: [...hidden, ...unclear], nextCursor: page.nextCursor };
    },
  };
}

const includesOurs = (versions: unknown) => Array.isArray(versions) && versions.includes(REVISION);

function toResult(value: unknown): RemoteResult {
  const result = remoteResultSchema.parse(value);
  if (result.resultType === "input_required")
    throw new Error("The tool asks for a person's input, which an agent cannot give.");
  return result;
}

type Request = (...given: Parameters<Post>) => Promise<Record<string, unknown>>;

async function resultOfTask(
  request: Request,
  created: z.output<typeof taskSchema>,
  signal: AbortSignal,
): Promise<RemoteResult> {
  const named = { taskId: created.taskId };
  const toState = (value: unknown) => {
    const task = taskSchema.parse(value);
    return { ...task, pollMs: task.pollIntervalMs };
  };
  const ended = await followTask(
    {
      created: toState(created),
      read: async (signal) => toState(await request("tasks/get", named, { signal })),
      cancel: (signal) => request("tasks/cancel", named, { signal }),
    },
    signal,
  );
  if (ended.status === "completed") return toResult(ended.result);
  throw new Error(ended.error?.message ?? ended.statusMessage ?? `The task is ${ended.status}.`);
}

/** Sends one request; null for an answer that is no response of JSON-RPC. */
function makePost({ url, headers, fetch }: Omit<Connection, "signal">): Post {
  let lastId = 0;
  return async (method, params, { signal, headers: more = {} }) => {
    lastId += 1;
    const id = lastId;
    const name = params.name ?? params.taskId;
    const own = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": REVISION,
      "mcp-method": method,
      ...(typeof name === "string" && { "mcp-name": toHeaderText(name) }),
    };
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id,
      method,
      params: { ...params, _meta: { ...Object(params._meta), ...meta } },
    });
    const response = await fetch(url, { method: "POST", headers: { ...headers, ...more, ...own }, body, signal });
    const text = await response.text();
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    return responseSchema.safeParse(isStream ? findResponse(text, id) : toJson(text)).data ?? null;
  };
}

/** The response to a request among the events of a stream. */
function findResponse(text: string, id: number): unknown {
  let found: unknown;
  const parser = createParser({
    onEvent: ({ data }) => {
      const message = toJson(data);
      if (Object(message).id === id) found = message;
    },
  });
  parser.feed(text.endsWith("\n\n") ? text : `${text}\n\n`);
  return found;
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether a tool's schema names headers (`x-mcp-header`) as it may, and nowhere else; another tool must not be used. */
function hasClearHeaders({ inputSchema }: RemoteTool): boolean {
  try {
    checkToolSchema({ ...inputSchema, type: "object" });
  } catch {
    return false;
  }
  const named = JSON.stringify(inputSchema).split('"x-mcp-header":').length - 1;
  return named === paramHeadersOf(inputSchema).length;
}

function toParamHeaders({ inputSchema }: RemoteTool, given: Record<string, unknown>): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { header, path } of paramHeadersOf(inputSchema)) {
    const value = path.reduce<unknown>((at, name) => Object(at)[name], given);
    if (["string", "number", "boolean"].includes(typeof value))
      headers[`mcp-param-${header}`] = toHeaderText(String(value));
  }
  return headers;
}

/** A text as a header carries it: in Base64 when it is no plain ASCII, or would be taken for Base64. */
function toHeaderText(text: string): string {
  const isPlain = /^[\x20-\x7e]*$/.test(text) && text.trim() === text && !/^=\?base64\?.*\?=$/.test(text);
  return isPlain ? text : `=?base64?${Buffer.from(text).toString("base64")}?=`;
}
