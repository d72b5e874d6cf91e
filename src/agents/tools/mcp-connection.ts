/** A tool of an MCP server, as its list shows it. */
export type RemoteTool = {
  name: string;
  title?: string | undefined;
  description?: string | undefined;
  inputSchema: Record<string, unknown>;
};

/** What a tool of a server returned, as far as a run reads it. */
export type RemoteResult = {
  content?: { type: string; [field: string]: unknown }[] | undefined;
  structuredContent?: unknown;
  isError?: boolean | undefined;
};

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
  /** One page of its tools. */
  list(
    cursor: string | undefined,
    signal: AbortSignal,
  ): Promise<{ tools: ListedTool[]; nextCursor?: string | undefined }>;
};
