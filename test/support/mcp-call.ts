import type { ApiClient, ApiResponse } from "./http-client.ts";

/** A message to the tool server. */
export function rpc(id: unknown, method: string, params?: unknown): object {
  return { jsonrpc: "2.0", id, method, ...(params === undefined ? {} : { params }) };
}

/** A tool's call as a message. */
export function toolCall(id: unknown, name: string, given: object = {}): object {
  return rpc(id, "tools/call", { name, arguments: given });
}

/** What a tool told: the JSON of its text, and whether it is an error. Throws for an answer that is no result. */
export function readToolResult(answer: ApiResponse, at = "result"): { isError: boolean; value: unknown } {
  return { isError: answer.at(`${at}.isError`) === true, value: JSON.parse(answer.string(`${at}.content[0].text`)) };
}

/** Calls one tool and reads its result. */
export async function callTool(client: ApiClient, name: string, given: object = {}) {
  return readToolResult(await client.post("/mcp", toolCall(1, name, given)));
}
