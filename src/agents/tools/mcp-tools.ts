import { z } from "zod";
import { checkToolSchema, paramHeadersOf } from "../../definitions/published-tools.ts";
import { type Connection, connectTo, type Remote } from "./mcp-client.ts";
import { callInTask, type RemoteResult, remoteResultSchema, TASK_TIMEOUT_MS } from "./mcp-task.ts";
import type { ToolSetup } from "./tool.ts";

/** The tools of an MCP server of either era, as a run lists and calls them. */

const CALL_TIMEOUT_MS = 60_000;
/** Tools of one server that a run takes, and pages of its list that are read. */
export const MAX_TOOLS = 64;
const MAX_PAGES = 10;
/** Tools of a page that are looked at. */
const MAX_LISTED = 1_000;
const MAX_DESCRIPTION = 2_000;
/** Longest schema of a tool's arguments, in characters of JSON; the model is not given a longer one. */
const MAX_SCHEMA = 20_000;

const text = z.string().optional().catch(undefined);

/**
 * A tool of an MCP server, as its list shows it. What is checked of its schema is what providers would refuse all tools of a
 * request for.
 */
const remoteToolSchema = z.looseObject({
  name: z.string().min(1),
  title: text,
  description: text,
  inputSchema: z.looseObject({
    type: z.literal("object").default("object"),
    properties: z.record(z.string(), z.union([z.looseObject({}), z.boolean()])).optional(),
    required: z.array(z.string()).optional(),
  }),
  execution: z.looseObject({ taskSupport: z.string().optional() }).optional().catch(undefined),
});
type RemoteTool = z.output<typeof remoteToolSchema>;

const pageSchema = z.looseObject({
  tools: z.array(z.unknown()),
  nextCursor: z.string().nullish().catch(undefined),
});

/** A server's tool that can be called: what of it a model is shown. `timeoutMs`: the longest time of a call. */
export type ListedTool = Pick<RemoteTool, "name" | "inputSchema"> & {
  description: string;
  timeoutMs: number;
  call(
    given: Record<string, unknown>,
    options: { signal: AbortSignal; meta: Record<string, unknown> },
  ): Promise<RemoteResult>;
};

/**
 * The first pages of a server's tools. `hidden`: the names of those that cannot be used, because they are malformed, or because
 * it is not clear which headers their calls need.
 * @throws if the server cannot be reached, and if it does not list its tools.
 */
export async function findTools(
  to: Connection,
  closeLater: ToolSetup["closeLater"],
): Promise<{ listed: ListedTool[]; hidden: string[] }> {
  const remote = await connectTo(to, closeLater);
  const listed: ListedTool[] = [];
  const hidden: string[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES && listed.length < MAX_TOOLS; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const { tools, nextCursor } = pageSchema.parse(await remote.request("tools/list", params, to));
    for (const [place, one] of tools.slice(0, MAX_LISTED).entries())
      await to.share(async () => {
        const { data: tool } = remoteToolSchema.safeParse(one);
        if (tool && (!remote.isStateless || hasClearHeaders(tool))) listed.push(toListed(remote, tool));
        else hidden.push(nameOf(Object(one).name) ?? `no. ${place + 1}`);
      });
    if (!nextCursor) break;
    cursor = nextCursor;
  }
  return { listed, hidden: hidden.slice(0, MAX_TOOLS) };
}

const nameOf = (name: unknown) =>
  typeof name === "string" && name !== "" ? name.slice(0, 100).toWellFormed() : undefined;

/** A tool as it is called: before 2026-07-28 as a task if it only makes tasks, since then as its server decides. */
function toListed(remote: Remote, tool: RemoteTool): ListedTool {
  const { isStateless } = remote;
  const { name, title, description = title ?? name, inputSchema, execution } = tool;
  const mayBeTask = isStateless || execution?.taskSupport === "required";
  const named = isStateless ? paramHeadersOf(inputSchema) : [];
  const isFit = JSON.stringify(inputSchema).length <= MAX_SCHEMA;
  return {
    name,
    description: Buffer.from(description.slice(0, MAX_DESCRIPTION)).toString(), // a copy: a slice keeps all of it in memory
    inputSchema: isFit ? inputSchema : { type: "object" },
    timeoutMs: mayBeTask ? TASK_TIMEOUT_MS : CALL_TIMEOUT_MS,
    async call(given, { signal, meta }) {
      const params = { name, arguments: given, _meta: meta };
      const headers = isStateless ? toParamHeaders(named, given) : {};
      if (mayBeTask) return remote.finish(callInTask(remote, params, { signal, headers }));
      return remoteResultSchema.parse(await remote.request("tools/call", params, { signal }));
    },
  };
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

function toParamHeaders(
  named: ReturnType<typeof paramHeadersOf>,
  given: Record<string, unknown>,
): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { header, path } of named) {
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
