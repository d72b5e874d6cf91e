import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import type { JsonSchemaValidator } from "@modelcontextprotocol/sdk/validation";
import { AppError } from "../../errors.ts";
import type { Logger } from "../../logger.ts";
import type { GuardedRequest } from "../../net/guarded-request.ts";
import { boundBody } from "./bound-body.ts";
import { fillHeaders } from "./fill-context.ts";
import type { AgentTool, ToolOutput } from "./tool.ts";
import type { McpToolConfig } from "./tool-configs.ts";

const CONNECT_TIMEOUT_MS = 10_000;
const CALL_TIMEOUT_MS = 60_000;
/** Tools of one server that a run takes, and pages of its list that are read. */
const MAX_TOOLS = 64;
const MAX_PAGES = 10;
const MAX_DESCRIPTION = 2_000;
/** Longest schema of a tool's arguments, in characters of JSON; the model is not given a longer one. */
const MAX_SCHEMA = 20_000;
/** Longest answer of a server, in bytes. */
const MAX_ANSWER_BYTES = 4 << 20;

/**
 * Results are not checked against the schemas that a server gives for them: the model reads a result as text, and a schema's
 * regular expressions could hold up the worker for as long as the server likes.
 */
const unchecked = {
  getValidator<T>(): JsonSchemaValidator<T> {
    return (input) => ({ valid: true, data: input as T, errorMessage: undefined }); // nothing reads it as a T
  },
};

export type McpTools = { tools: AgentTool[]; close(): Promise<void> };
type ListedTool = Awaited<ReturnType<Client["listTools"]>>["tools"][number];
type Named = { name: string; description?: string | undefined };

/**
 * The tools of an MCP server (https://modelcontextprotocol.io/specification, streamable HTTP), each under the name of this tool
 * and its own, `docs_search`; none but those that are allowed. A server that does not answer is one tool that says so: the run
 * goes on without it.
 */
export async function connectMcpTools(
  { outside, logger, signal }: { outside: GuardedRequest; logger: Logger; signal: AbortSignal },
  named: Named,
  { config, context }: { config: McpToolConfig; context: Readonly<Record<string, unknown>> | undefined },
): Promise<McpTools> {
  const headers = fillHeaders(config.headers, context);
  // Loaded by workers alone, and by runs that need it.
  const { Client: McpClient } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const client = new McpClient({ name: "switchyard", version: "1.0.0" }, { jsonSchemaValidator: unchecked });
  const transport = new StreamableHTTPClientTransport(new URL(config.url), {
    requestInit: { headers },
    fetch: async (url, init) => boundBody(await outside.fetch(url, init), MAX_ANSWER_BYTES),
  });
  const close = () => client.close();
  try {
    const options = { signal, timeout: CONNECT_TIMEOUT_MS, maxTotalTimeout: CONNECT_TIMEOUT_MS };
    // The SDK's own types disagree with each other under exactOptionalPropertyTypes.
    await client.connect(transport as Parameters<Client["connect"]>[0], options);
    const listed = await listTools(client, options);
    const isAllowed = ({ name }: ListedTool) => config.allowedTools?.includes(name) ?? true;
    return { tools: toTools(client, named, listed.filter(isAllowed)), close };
  } catch (error) {
    await close();
    const problem = toProblem(error);
    logger.warn({ tool: named.name, problem }, "an agent's MCP server cannot be used");
    return { tools: [toMissingTool(named, problem)], close: async () => undefined };
  }
}

async function listTools(client: Client, options: { signal: AbortSignal; timeout: number }): Promise<ListedTool[]> {
  const listed: ListedTool[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES && listed.length < MAX_TOOLS; page += 1) {
    const { tools, nextCursor } = await client.listTools(cursor === undefined ? {} : { cursor }, options);
    listed.push(...tools);
    if (nextCursor === undefined) break;
    cursor = nextCursor;
  }
  return listed;
}

function toTools(client: Client, named: Named, listed: readonly ListedTool[]): AgentTool[] {
  const tools = new Map<string, AgentTool>();
  for (const tool of listed.slice(0, MAX_TOOLS)) {
    const name = `${named.name}_${tool.name}`.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64);
    if (!tools.has(name)) tools.set(name, toTool(client, name, tool)); // of two that a cut makes alike, the first
  }
  return [...tools.values()];
}

function toTool(client: Client, name: string, tool: ListedTool): AgentTool {
  const isFit = JSON.stringify(tool.inputSchema).length <= MAX_SCHEMA;
  return {
    name,
    description: (tool.description ?? tool.title ?? tool.name).slice(0, MAX_DESCRIPTION).toWellFormed(),
    parameters: isFit ? { ...tool.inputSchema } : { type: "object" },
    timeoutMs: CALL_TIMEOUT_MS,
    async run(input, { signal, idempotencyKey }) {
      const given = { ...(input as Record<string, unknown>) }; // `callTool` passes objects only
      const options = { signal, timeout: CALL_TIMEOUT_MS, maxTotalTimeout: CALL_TIMEOUT_MS };
      try {
        const request = { name: tool.name, arguments: given, _meta: { idempotencyKey } };
        return toOutput(await client.callTool(request, undefined, options));
      } catch (error) {
        signal.throwIfAborted();
        throw new AppError("provider_failed", toProblem(error), { cause: error });
      }
    },
  };
}

/** The texts of a result; of what is no text, its kind. */
function toOutput(result: Awaited<ReturnType<Client["callTool"]>>): ToolOutput {
  const content = Array.isArray(result.content) ? result.content : [];
  const parts = content.map((part: { type: string; text?: unknown; resource?: { text?: unknown } }) => {
    const text = part.text ?? part.resource?.text;
    return typeof text === "string" ? text : `[${part.type}]`;
  });
  const structured = parts.length === 0 && result.structuredContent ? [JSON.stringify(result.structuredContent)] : [];
  return { output: [...parts, ...structured].join("\n"), isError: result.isError === true };
}

function toMissingTool({ name }: Named, problem: string): AgentTool {
  return {
    name,
    description: "Tools of a server that cannot be reached now: this tool does nothing.",
    parameters: { type: "object", properties: {} },
    timeoutMs: CONNECT_TIMEOUT_MS,
    run: () => Promise.reject(new AppError("source_unreachable", `The server of these tools: ${problem}`)),
  };
}

/** What went wrong, in words that tell nothing of the network within. */
function toProblem(error: unknown): string {
  if (error instanceof AppError) return error.message;
  if (!(error instanceof Error)) return "failed";
  if (error.cause instanceof AppError) return error.cause.message;
  return error.message.slice(0, 500).toWellFormed();
}
