import type { z } from "zod";
import type { GatewayCaller } from "../gateway/money/account.ts";
import type { Platform } from "../platform.ts";
import type { Caller, Role } from "../tenancy/roles.ts";

/** What tools are made of; each takes what it needs. */
export type ToolPlatform = Pick<
  Platform,
  "config" | "store" | "redis" | "queues" | "jobs" | "gateway" | "rag" | "agents" | "composite" | "organizations"
>;

/** One call of a tool: who calls, and until when somebody listens. */
export type ToolCall = { platform: ToolPlatform; caller: Caller; surface: string; signal: AbortSignal };

type ToolFields<S extends z.ZodType> = {
  name: string;
  /** For the model that chooses among the tools. */
  description: string;
  /** Who may use it; it is not listed to others. */
  role: Role;
  /** Schema of the arguments: an object, the same as the HTTP interface takes. */
  input: S;
};

export type ToolDeclaration<S extends z.ZodType> = ToolFields<S> & {
  /** Does the work; what it gives is told as JSON. */
  run(call: ToolCall, given: z.output<S>): Promise<unknown>;
};

/** A tool whose types have been forgotten. */
export type AnyTool = ToolFields<z.ZodType> & {
  // A method, not a property: its parameter is compared loosely, so that every declaration is an AnyTool.
  run(call: ToolCall, given: never): Promise<unknown>;
};

/** Declares a tool; the schema gives the type of its arguments. */
export function tool<S extends z.ZodType>(declaration: ToolDeclaration<S>): AnyTool {
  return declaration;
}

/** Who makes the model calls of a tool. */
export function toGatewayCaller({ caller, surface, signal }: ToolCall): GatewayCaller {
  return { tenantId: caller.tenantId, keyId: caller.keyId, surface, signal };
}
