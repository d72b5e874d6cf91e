import { z } from "zod";

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
export type RemoteTool = z.output<typeof remoteToolSchema>;

/** A page of a server's tools, each still as it came. */
export const toolPageSchema = z.looseObject({
  tools: z.array(z.unknown()),
  nextCursor: z.string().nullish().catch(undefined),
});

/** What a tool of a server returned, as far as a run reads it. Kinds of content may come that are not known here. */
export const remoteResultSchema = z.looseObject({
  resultType: z.string().optional().catch(undefined),
  content: z.array(z.unknown()).optional(),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().optional().catch(undefined),
});
export type RemoteResult = z.output<typeof remoteResultSchema>;

/** Reads the tools of a page; those that are malformed are `hidden`, by their names. */
export function readTools(listed: readonly unknown[]): { tools: RemoteTool[]; hidden: string[] } {
  const tools: RemoteTool[] = [];
  const hidden: string[] = [];
  for (const [place, one] of listed.entries()) {
    const { data } = remoteToolSchema.safeParse(one);
    if (data) tools.push(data);
    else hidden.push(nameOf(Object(one).name) ?? `no. ${place + 1}`);
  }
  return { tools, hidden };
}

const nameOf = (name: unknown) =>
  typeof name === "string" && name !== "" ? name.slice(0, 100).toWellFormed() : undefined;

/** How a server is reached. */
export type Connection = { url: string; headers: Record<string, string>; fetch: typeof fetch; signal: AbortSignal };

/** A server's tool that can be called. `timeoutMs`: the longest time of a call. */
export type ListedTool = RemoteTool & { timeoutMs: number; call: RemoteCall };

type RemoteCall = (
  given: Record<string, unknown>,
  options: { signal: AbortSignal; meta: Record<string, unknown> },
) => Promise<RemoteResult>;

/** A client of a server, of either era. */
export type RemoteClient = {
  /** One page of its tools. `hidden`: the names of those that cannot be used. */
  list(
    cursor: string | undefined,
    signal: AbortSignal,
  ): Promise<{ tools: ListedTool[]; hidden: string[]; nextCursor?: string | null | undefined }>;
};
