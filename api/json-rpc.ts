import { z } from "zod";
import { withFewFields } from "../src/bounded-json.ts";
import { named } from "./schema-names.ts";

/** Codes of JSON-RPC 2.0 (https://www.jsonrpc.org/specification, 5.1); `refused` is of the range left to servers. */
export const rpcCodes = {
  parse: -32_700,
  request: -32_600,
  method: -32_601,
  params: -32_602,
  internal: -32_603,
  refused: -32_000,
} as const;

export type RpcId = string | number | null;
export type RpcError = { code: number; message: string; data?: unknown };
export type RpcResponse = { jsonrpc: "2.0"; id: RpcId } & ({ result: object } | { error: RpcError });

/** A message as we act on it. Notifications and answers to requests of ours, of which there are none, ask for nothing. */
export type Incoming =
  | { kind: "request"; id: string | number; method: string; params: unknown }
  | { kind: "silent" }
  | { kind: "invalid"; id: RpcId; message: string };

const MAX_MESSAGE_FIELDS = 100;

const isEnvelope = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && "jsonrpc" in value && value.jsonrpc === "2.0";

/** A body that is JSON-RPC at all: a message, or a batch of which at least one is. */
export const rpcBodySchema = named(
  "RpcRequest",
  z.union([
    withFewFields(
      MAX_MESSAGE_FIELDS,
      z.looseObject({
        jsonrpc: z.literal("2.0"),
        id: z.unknown().optional().describe("A string or a number; absent for a notification"),
        method: z.unknown().optional().describe("`initialize`, `ping`, `tools/list` or `tools/call`"),
        params: z.unknown().optional().describe("An object"),
      }),
    ),
    z
      .array(z.unknown())
      .min(1)
      .refine((messages) => messages.some(isEnvelope), "must hold JSON-RPC messages"),
  ]),
);

const rpcId = z.union([z.string(), z.number(), z.null()]);
export const rpcErrorSchema = named(
  "RpcError",
  z.object({
    jsonrpc: z.literal("2.0"),
    id: rpcId,
    error: z.object({ code: z.number().int(), message: z.string(), data: z.unknown().optional() }),
  }),
);
const rpcResponseSchema = named(
  "RpcResponse",
  z.union([z.object({ jsonrpc: z.literal("2.0"), id: rpcId, result: z.looseObject({}) }), rpcErrorSchema]),
);
/** The answer to a message, or to a batch. */
export const rpcAnswerSchema = named("RpcReply", z.union([rpcResponseSchema, z.array(rpcResponseSchema).min(1)]));

/** What one message of a body is. The id of a request is a string or a number: MCP does not allow null, as JSON-RPC does. */
export function readMessage(value: unknown): Incoming {
  if (!isEnvelope(value)) return { kind: "invalid", id: null, message: "This is no JSON-RPC 2.0 message." };
  const { id, method, params } = value;
  const hasId = typeof id === "string" || typeof id === "number";
  if (typeof method === "string") {
    if (id === undefined) return { kind: "silent" };
    if (!hasId) return { kind: "invalid", id: null, message: "The id of a request must be a string or a number." };
    return { kind: "request", id, method, params };
  }
  if (method === undefined && ("result" in value || "error" in value)) return { kind: "silent" };
  return { kind: "invalid", id: hasId ? id : null, message: "A request needs a method." };
}

export function rpcResult(id: RpcId, result: object): RpcResponse {
  return { jsonrpc: "2.0", id, result };
}

export function rpcError(id: RpcId, code: number, message: string, data?: unknown): RpcResponse {
  return { jsonrpc: "2.0", id, error: { code, message, ...(data === undefined ? {} : { data }) } };
}
