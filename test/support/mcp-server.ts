import { once } from "node:events";
import { createServer } from "node:http";
import { McpServer as Server } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

export type McpServer = {
  url: string;
  origin: string;
  /** The tools called, with their arguments and `_meta`. */
  calls: { name: string; given: unknown; idempotencyKey: unknown; authorization: string | undefined }[];
  close(): Promise<void>;
};

/** An MCP server on loopback, by the official SDK, with tools that look up, fail, hang, and answer at great length. */
export async function startMcpServer(): Promise<McpServer> {
  const calls: McpServer["calls"] = [];
  const listener = createServer(async (request, response) => {
    const { authorization } = request.headers;
    const server = new Server({ name: "shelf", version: "1.0.0" });
    const on = (name: string, answer: (given: { key: string }) => string | Promise<string>) =>
      server.registerTool(
        name,
        { description: `The tool ${name} of the shelf`, inputSchema: { key: z.string() } },
        async (given, { _meta }) => {
          calls.push({ name, given, idempotencyKey: _meta?.idempotencyKey, authorization });
          return { content: [{ type: "text" as const, text: await answer(given) }] };
        },
      );
    on("look.up", ({ key }) => `The shelf holds ${key}.`);
    on("remove", () => "removed");
    on("fail", () => Promise.reject(new Error("the shelf fell over")));
    on("flood", () => "x".repeat(10 << 20));
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    response.on("close", () => void server.close());
    await server.connect(transport as Parameters<Server["connect"]>[0]);
    await transport.handleRequest(request, response);
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("the MCP server has no port");
  const origin = `http://127.0.0.1:${address.port}`;
  return {
    origin,
    url: `${origin}/mcp`,
    calls,
    close: async () => {
      listener.close();
      listener.closeAllConnections();
      await once(listener, "close");
    },
  };
}
