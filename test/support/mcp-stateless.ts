import type { ApiClient } from "./http-client.ts";
import { rpc } from "./mcp-call.ts";

export const statelessRevision = "2026-07-28";
const field = (name: string) => `io.modelcontextprotocol/${name}`;

/** What a request of 2026-07-28 says of itself. */
export const metaOf = (capabilities: object = {}, protocolVersion = statelessRevision) => ({
  [field("protocolVersion")]: protocolVersion,
  [field("clientCapabilities")]: capabilities,
});

type Params = { name?: string; taskId?: string; [field: string]: unknown };

/** Sends a request of 2026-07-28 with its headers; `headers` change them, null leaves one out. */
export function postStateless(
  client: ApiClient,
  method: string,
  params: Params = {},
  { capabilities = {}, headers = {} }: { capabilities?: object; headers?: Record<string, string | null> } = {},
) {
  const all: Record<string, string | null | undefined> = {
    "mcp-protocol-version": statelessRevision,
    "mcp-method": method,
    "mcp-name": params.name ?? params.taskId,
    ...headers,
  };
  const sent = Object.entries(all).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  const body = rpc(1, method, { _meta: metaOf(capabilities), ...params });
  return client.post("/mcp", body, { headers: Object.fromEntries(sent) });
}
