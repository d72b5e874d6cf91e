import { z } from "zod";
import { withFewFields } from "../../src/lib/bounded-json.ts";
import { defined } from "../../src/lib/defined.ts";
import { errorBodySchema } from "../openapi.ts";
import { named } from "../schema-names.ts";

/**
 * Codes of JSON-RPC 2.0 (https://www.jsonrpc.org/specification, 5.1); `refused` is of the range left to servers. `internal`
 * is for a part that does not answer or takes no writes: any other failure of a tool is a result. The last three are those of
 * MCP 2026-07-28.
 */
export const rpcCodes = {
  parse: -32_700,
  request: -32_600,
  method: -32_601,
  params: -32_602,
  internal: -32_603,
  refused: -32_000,
  headerMismatch: -32_020,
  missingCapability: -32_021,
  unknownRevision: -32_022,
} as const;

/** An error of the protocol. `status`: that of its HTTP response, where a revision gives it one. */
export class RpcFault extends Error {
  readonly code: number;
  readonly data: unknown;
  readonly status: number | undefined;

  constructor(code: number, message: string, { data, status }: { data?: unknown; status?: number } = {}) {
    super(message);
    this.name = "RpcFault";
    this.code = code;
    this.data = data;
    this.status = status;
  }
}

export type RpcId = z.output<typeof rpcId>;
export type RpcResponse = z.output<typeof rpcResponseSchema>;

/** A message as we act on it. `silent`: a notification. `answer`: a response to a request of ours, or to none. */
export type Incoming =
  | { kind: "request"; id: string | number; method: string; params: Record<string, unknown> }
  | { kind: "silent" }
  | { kind: "answer"; id: unknown; result: unknown }
  | { kind: "invalid"; id: RpcId; message: string; code?: number };

const MAX_MESSAGE_FIELDS = 100;

/** Whether a value of JSON is an object. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isEnvelope = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && "jsonrpc" in value && value.jsonrpc === "2.0";

/** A JSON-RPC body: a message, or a batch that holds at least one. */
export const rpcBodySchema = named(
  "RpcRequest",
  z.union([
    withFewFields(
      MAX_MESSAGE_FIELDS,
      z.looseObject({
        jsonrpc: z.literal("2.0"),
        id: z.unknown().optional().describe("A string or a number; absent for a notification"),
        method: z.unknown().optional().describe("As `tools/list` or `tools/call`"),
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
/** The response to a message, or those to a batch. */
export const rpcReplySchema = named("RpcReply", z.union([rpcResponseSchema, z.array(rpcResponseSchema).min(1)]));
/** A message of a stream: a response, or a notification or a question before it. */
export const rpcEventSchema = named(
  "RpcEvent",
  z.union([
    rpcResponseSchema,
    z.object({
      jsonrpc: z.literal("2.0"),
      id: z.union([z.string(), z.number()]).optional(),
      method: z.string(),
      params: z.looseObject({}),
    }),
  ]),
);
export const rpcFailureSchema = named("RpcFailure", z.union([rpcReplySchema, errorBodySchema]));

/** Reads one message of a body. The id of a request is a string or a number: unlike JSON-RPC, MCP does not allow null. */
export function readMessage(value: unknown): Incoming {
  if (!isEnvelope(value)) return { kind: "invalid", id: null, message: "This is no JSON-RPC 2.0 message." };
  const { id, method, params } = value;
  const hasId = typeof id === "string" || typeof id === "number";
  if (typeof method === "string") {
    if (id === undefined) return { kind: "silent" };
    if (!hasId) return { kind: "invalid", id: null, message: "The id of a request must be a string or a number." };
    if (params === undefined) return { kind: "request", id, method, params: {} };
    if (isObject(params)) return { kind: "request", id, method, params };
    return { kind: "invalid", id, message: "params must be an object.", code: rpcCodes.params };
  }
  if (method === undefined && ("result" in value || "error" in value))
    return { kind: "answer", id, result: value.result };
  return { kind: "invalid", id: hasId ? id : null, message: "A request needs a method." };
}

export function rpcResult(id: RpcId, result: Record<string, unknown>): RpcResponse {
  return { jsonrpc: "2.0", id, result };
}

export function rpcError(id: RpcId, code: number, message: string, data?: unknown): RpcResponse {
  return { jsonrpc: "2.0", id, error: { code, message, ...defined({ data }) } };
}

/** Items of an array that are JSON already. They are parsed if they are part of a larger value, but not by `toText`. */
export class JsonTexts {
  readonly texts: readonly string[];

  constructor(texts: readonly string[]) {
    this.texts = texts;
  }

  toJSON(): unknown[] {
    return this.texts.map((text) => JSON.parse(text));
  }
}

/** A response as JSON. The tools of a list are not parsed for it: their schemas are long. */
export function toText(response: RpcResponse): string {
  const { tools, ...rest } = "result" in response ? response.result : {};
  if (!(tools instanceof JsonTexts)) return JSON.stringify(response);
  const head = JSON.stringify({ ...response, result: { ...rest, tools: [] } });
  return `${head.slice(0, -"]}}".length)}${tools.texts.join(",")}]}}`;
}

export const isUnavailable = (response: RpcResponse): boolean =>
  "error" in response && response.error.code === rpcCodes.internal;
