import type { z } from "zod";
import type { GatewayCaller } from "../gateway/money/account.ts";
import { toAcceptedView, toJobError } from "../jobs/job-outcome.ts";
import type { Platform } from "../platform.ts";
import type { JobRecord } from "../store/job-record.ts";
import { isFinal } from "../store/job-state.ts";
import type { Role } from "../store/key-store.ts";
import type { Caller } from "../tenancy/roles.ts";

/** The parts of the platform that tools use. */
export type ToolPlatform = Pick<
  Platform,
  | "config"
  | "store"
  | "redis"
  | "queues"
  | "jobs"
  | "gateway"
  | "rag"
  | "agents"
  | "composite"
  | "organizations"
  | "quotas"
>;

/** One call of a tool: the caller, and a signal that aborts when the client has left. */
export type ToolCall = { platform: ToolPlatform; caller: Caller; surface: string; signal: AbortSignal };

type ToolFields<S extends z.ZodObject> = {
  name: string;
  /** For the model that chooses among the tools. */
  description: string;
  /** The role that a key needs; the tool is not listed to others. */
  role: Role;
  /** Schema of the arguments: the same as the HTTP interface takes. */
  input: S;
};

/** A tool without the types of its arguments. */
export type AnyTool = ToolFields<z.ZodObject> & {
  // A method, not a property: its parameter is compared loosely, so that every tool is an AnyTool.
  run(call: ToolCall, given: never): Promise<unknown>;
};

type Declaration<S extends z.ZodObject> = Omit<ToolFields<S>, "role"> & {
  role?: Role;
  /** Does the work; its result is sent as JSON. */
  run(call: ToolCall, given: z.output<S>): Promise<unknown>;
};

/** Declares a tool, for members unless it names a role; the schema gives the type of its arguments. */
export const tool = <S extends z.ZodObject>(declaration: Declaration<S>): AnyTool => ({
  role: "member",
  ...declaration,
});

/** The caller of a tool's model calls. */
export function toGatewayCaller({ caller, surface, signal }: ToolCall): GatewayCaller {
  return { tenantId: caller.tenantId, keyId: caller.keyId, surface, signal };
}

/**
 * The result of a job, or, after `TOOL_WAIT_MS`, its ids and where to follow it: clients of the tool server give up after
 * about a minute, and the job must not be lost to them.
 * @throws AppError the job's own error; `wrong_state` when it was cancelled.
 */
export async function waitForResult({ platform, caller, signal }: ToolCall, job: JobRecord): Promise<unknown> {
  const timeoutMs = platform.config.tools.waitMs;
  const record = await platform.jobs.wait(caller.tenantId, job._id, { timeoutMs, signal });
  if (!isFinal(record.status)) return toAcceptedView(record);
  if (record.status === "completed") return record.result;
  throw toJobError(record);
}
