import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";

/** How a server of the handshake answers a method; undefined: 202 without a body. */
type Answers = Record<string, (params: Record<string, unknown>) => unknown>;

/**
 * An MCP server on loopback that keeps sessions, and answers what it is told to. `raw`: whole responses to methods, in the place
 * of an answer.
 */
export async function startOddMcpServer(
  answers: Answers,
  raw: Record<string, (response: ServerResponse) => void> = {},
) {
  let session = 0;
  let isOpen = false;
  const methods: (string | undefined)[] = []; // an answer has none
  const server = createServer(async (request, response) => {
    const text = (await request.toArray()).map(String).join("");
    if (request.method !== "POST") return void response.writeHead(405).end();
    const { id, method, params = {} } = JSON.parse(text);
    const given = request.headers["mcp-session-id"];
    methods.push(method);
    if (raw[method]) return raw[method](response);
    if (method !== "initialize" && given !== undefined && (!isOpen || given !== `s${session}`))
      return void response.writeHead(404).end("no such session");
    const head: Record<string, string> = { "content-type": "application/json" };
    if (method === "initialize") {
      session += 1;
      isOpen = true;
      head["mcp-session-id"] = `s${session}`;
    }
    if (id === undefined) return void response.writeHead(202).end();
    const own =
      method === "initialize"
        ? { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "odd", version: "1" } }
        : answers[method]?.(params);
    const body = own === undefined ? { error: { code: -32601, message: "not here" } } : { result: own };
    response.writeHead(200, head).end(JSON.stringify({ jsonrpc: "2.0", id, ...body }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const origin = `http://127.0.0.1:${address.port}`;
  return {
    origin,
    url: `${origin}/mcp`,
    methods,
    /** Ends the session under way, as a server that starts again. */
    endSession: () => {
      isOpen = false;
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
