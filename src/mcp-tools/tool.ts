import type { z } from "zod";
import type { GatewayCaller } from "../gateway/money/account.ts";
import { awaitsPerson, toJobError } from "../jobs/job-outcome.ts";
import type { Platform } from "../platform.ts";
import type { JobRecord } from "../store/job-record.ts";
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
  | "searchTools"
  | "agents"
  | "composite"
  | "organizations"
  | "workflows"
  | "quotas"
>;

/** One call of a tool: the caller, and a signal that aborts when the client has left. */
export type ToolCall = {
  platform: ToolPlatform;
  caller: Caller;
  surface: string;
  signal: AbortSignal;
  /** Is given the job that the call waits for, at each change. */
  onJob?: ((job: JobRecord) => void) | undefined;
};

type ToolFields<S extends z.ZodObject> = {
  name: string;
  /** For people. */
  title: string;
  /** For the model that chooses among the tools. */
  description: string;
  /** The role that a key needs; the tool is not listed to others. */
  role: Role;
  /** Schema of the arguments: the same as the HTTP interface takes. */
  input: S;
  /** Its JSON Schema as text, if the tool's own checks say more than `input`. */
  inputSchema?: string;
  /** Schema of the result. */
  output?: z.ZodObject;
  /** What a client may know before it calls, of those that are not as the protocol takes for granted. */
  hints: ToolHints;
};

/** The protocol's `ToolAnnotations`, but for the title. Absent, a tool may change and destroy, and deals with the open world. */
type ToolHints = {
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
};

/** A tool without the types of its arguments: it returns a result (`run`), or the job that makes one (`start`). */
export type AnyTool = ToolFields<z.ZodObject> & {
  // Methods, not properties: their parameters are compared loosely, so that every tool is an AnyTool.
  run?(call: ToolCall, given: never): Promise<unknown>;
  start?(call: ToolCall, given: never): Promise<JobRecord>;
};

type Declaration<S extends z.ZodObject> = Omit<ToolFields<S>, "role"> & {
  role?: Role;
  /** Does the work; its result is sent as JSON. */
  run?(call: ToolCall, given: z.output<S>): Promise<unknown>;
  /** Accepts the work, whose result is its job's. */
  start?(call: ToolCall, given: z.output<S>): Promise<JobRecord>;
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
 * A job as it is at its end, or after `TOOL_WAIT_MS`: clients of the tool server give up after about a minute, and the job must
 * not be lost to them. A run that awaits a person's decision is not waited for.
 */
export async function waitForJob(call: ToolCall, { _id: jobId }: JobRecord): Promise<JobRecord> {
  const { platform, caller, signal, onJob } = call;
  const { waitMs: timeoutMs } = platform.config.tools;
  const isEnough = (job: JobRecord) => {
    onJob?.(job);
    return awaitsPerson(job);
  };
  const job = await platform.jobs.wait(caller.tenantId, jobId, { timeoutMs, signal, isEnough });
  onJob?.(job);
  return job;
}

/** What a job has made that has ended. @throws AppError the job's own error; `wrong_state` when it was cancelled. */
export function resultOf(record: JobRecord): unknown {
  if (record.status === "completed") return record.result;
  throw toJobError(record);
}
