import { Client, type JSONRPCMessage, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient, type RawClientDispatch } from "@modelcontextprotocol/ext-tasks/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { valueAt } from "./http-client.ts";

/** The official clients of the Model Context Protocol, connected to a tool server. */

type At = { url: string; key: string };

const clientInfo = { name: "test", version: "1.0.0" };
const tasks = { "io.modelcontextprotocol/tasks": {} };
const endpointOf = ({ url }: At) => new URL(`${url}/mcp`);
const initOf = ({ key }: At) => ({ requestInit: { headers: { authorization: `Bearer ${key}` } } });

/** What a person says to a question: the decision, or that it is left to others. */
export type Answer = (message: string) => boolean | "decline";
const toReply = (said: boolean | "decline") =>
  said === "decline" ? { action: "decline" as const } : { action: "accept" as const, content: { confirm: said } };

/** The client of today. `answer`: what its person says; without it, the client has none. */
export async function connectToday(
  at: At,
  { answer, withTasks = false }: { answer?: Answer; withTasks?: boolean } = {},
): Promise<Client> {
  const capabilities = { ...(answer && { elicitation: {} }), ...(withTasks && { extensions: tasks }) };
  const client = new Client(clientInfo, { versionNegotiation: { mode: "auto" }, capabilities });
  if (answer) client.setRequestHandler("elicitation/create", ({ params }) => toReply(answer(params.message)));
  await client.connect(new StreamableHTTPClientTransport(endpointOf(at), initOf(at)));
  return client;
}

/**
 * The client of today with the official extension for tasks. That one wants to be given the way of its requests, because the
 * client itself refuses results of the type `task`: it is the client's own transport here.
 */
export async function openTaskSession(at: At, answer: Answer) {
  const client = await connectToday(at, { answer, withTasks: true });
  const transport = new StreamableHTTPClientTransport(endpointOf(at), initOf(at));
  const session = createTaskSessionFromClient(client, {
    endpointId: "switchyard",
    v2RequestFraming: {
      protocolVersion: "2026-07-28",
      clientInfo,
      clientCapabilities: { elicitation: {}, extensions: tasks },
    },
    rawDispatch: makeDispatch(transport),
    async onInputRequest(request) {
      return toReply(answer(String(valueAt(request, "params.message")))) as never; // of the request's kind
    },
  });
  await transport.start();
  const close = async () => {
    await session.close();
    await Promise.all([client.close(), transport.close()]);
  };
  return { session, close };
}

function makeDispatch(transport: StreamableHTTPClientTransport): RawClientDispatch {
  const waiting = new Map<unknown, (message: JSONRPCMessage) => void>();
  transport.onmessage = (message) => {
    if ("id" in message) waiting.get(message.id)?.(message);
  };
  return async (request, { signal } = {}) => {
    const id = waiting.size + 1;
    const { promise, resolve } = Promise.withResolvers<JSONRPCMessage>();
    waiting.set(id, resolve);
    const message = { jsonrpc: "2.0", id, ...Object(request) } as JSONRPCMessage;
    await transport.send(message, signal && { requestSignal: signal });
    const { result, error } = (await promise) as { result?: never; error?: never };
    return error === undefined ? { kind: "result", result: result as never } : { kind: "error", error };
  };
}

/** The client of 2025-11-25, which has listed the tools. */
export async function connectOld(at: At, answer: Answer = () => "decline"): Promise<OldClient> {
  const client = new OldClient(clientInfo, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => toReply(answer(params.message)));
  // The SDK's own types disagree with each other under exactOptionalPropertyTypes.
  await client.connect(new OldTransport(endpointOf(at), initOf(at)) as Parameters<OldClient["connect"]>[0]);
  await client.listTools();
  return client;
}
