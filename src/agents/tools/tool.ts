import type { RunnableConfig } from "@langchain/core/runnables";
import type { StructuredTool, ToolRunnableConfig, tool } from "@langchain/core/tools";
import type { z } from "zod";
import type { ProfileId } from "../../composite/profiles.ts";
import type { ChildRequest, Spent } from "../../definitions/runs.ts";
import type { Citation } from "../../gateway/citation.ts";
import type { CallLimit } from "../../gateway/money/account.ts";
import { hasEnded, startChildJob } from "../../jobs/child.ts";
import { AppError, invalidRequest } from "../../lib/errors.ts";
import { derivedId } from "../../lib/ids.ts";
import type { Logger } from "../../observe/logger.ts";
import type { AgentRunRecord, RunEnd } from "../../store/agent-run-store.ts";
import type { AuditPassage } from "../../store/audit-store.ts";
import type { JobRecord } from "../../store/job-record.ts";
import { isFinal } from "../../store/job-state.ts";
import type { Caller } from "../../tenancy/roles.ts";
import type { AgentsDeps } from "../deps.ts";
import type { FoundPassages } from "../passages.ts";
import { CallSuspended } from "../run-state.ts";
import type { RunUsage } from "../run-usage.ts";

/** How long a call that only starts a job may take, in ms: the job's own time is not the call's. */
export const START_TIMEOUT_MS = 60_000;

/**
 * What a call tells of itself beside its output: that it failed; the run of the agent that it asked, and what that run cites; the
 * job that it has started; what it found in documents.
 */
export type ToolNotes = {
  isError?: boolean;
  runId?: string;
  jobId?: string;
  citations?: AuditPassage[];
  found?: FoundPassages;
};

/** What a tool call is made with, besides its arguments: LangChain has no place for it. */
export type ToolContext = {
  /** Counts the model calls of the tool to the run. */
  limit: CallLimit;
  /** Counts what the tool used in other ways. */
  spend(spent: Spent): void;
  /** The budgets that bound what the call starts; see `RunUsage`. */
  budgets(): Promise<readonly string[] | undefined>;
  note(notes: ToolNotes): void;
  /** The same at every attempt of this call. */
  idempotencyKey: string;
  /** Aborts when the run has to end, and at the tool's time limit. */
  signal: AbortSignal;
};

/** `timeoutMs`: the longest time of a call, in ms. `keepsDigits`: whole numbers that a double would round reach it as texts. */
type AboutTool = {
  name: string;
  description: string;
  defaultConfig: RunnableConfig;
  extras: { timeoutMs: number; keepsDigits: boolean };
};

/** The result of an agent that was called as a tool. */
export type InnerResult = { output: string; status: string; stopReason?: string | undefined; runId: string } & Pick<
  RunEnd,
  "tokensUsed" | "costUsd"
> &
  Pick<Spent, "outputTokens"> & { citations?: Citation[] | undefined };

/** What a tool of a run is made with, besides its config. */
export type ToolSetup = {
  /** LangChain's. Handed in, because the API, which reads the configs of tools and runs none, does not load LangChain. */
  tool: typeof tool;
  /** The call that LangChain has started with this config. */
  callOf(config: ToolRunnableConfig): ToolContext;
  /** What a tool has from its agent's definition and its run, beside its own description and its longest time in ms. */
  about(description: string, timeoutMs: number, keepsDigits?: boolean): AboutTool;
  name: string;
  deps: AgentsDeps;
  run: AgentRunRecord;
  caller: Caller;
  /** The `context` of the run's request. */
  context: Readonly<Record<string, unknown>> | undefined;
  usage: RunUsage;
  /** When the run's time is over. */
  endsAt: Date;
  signal: AbortSignal;
  logger: Logger;
  /** Runs an agent that is called as a tool, inside this run. */
  execute(runId: string, signal: AbortSignal): Promise<InnerResult>;
  /** Begins such a run as soon as few enough are under way. Throws what `begin` throws, and the signal's reason. */
  inTurn<T>(signal: AbortSignal, begin: () => Promise<T>): Promise<T>;
  /** Does a part of the tenant's work in its turn. @throws what `part` throws, the signal's reason. */
  share<T>(part: () => Promise<T>): Promise<T>;
  /** Guards texts, by the names of their fields, as the tools of an agent demand. @throws AppError `compliance_blocked`. */
  guard(tools: readonly { type: string; config: object }[], texts: Readonly<Record<string, string>>): void;
  /** Notes in the run's log what it has to do without. Once for each text. */
  notice(text: string): Promise<void>;
  /** Calls `close` at the end of the run. */
  closeLater(close: () => Promise<void>): void;
};

/** One type of tool. A new type needs a file with such a value, its line in `tools.ts`, and a test. */
export type ToolKind<C> = {
  /** Schema of the field `config`. */
  schema: z.ZodType<C>;
  /** Checks what the schema cannot. @throws AppError `invalid_request`, `source_refused`, `not_found`; `param` is below `field`. */
  check?(
    config: C,
    at: { deps: Pick<AgentsDeps, "store" | "egress" | "rag">; tenantId: string; field: string },
  ): Promise<void>;
  /** The profile whose guard the input of a run has to pass before anything of it is kept or sent. */
  profile?(config: C): ProfileId;
  /** The tool, or tools, of a run. @throws AppError, which fails the run. */
  make(config: C, setup: ToolSetup): StructuredTool | Promise<StructuredTool | StructuredTool[]>;
};

/** Declares a type of tool; the schema gives the type of its configs. */
export const toolKind = <C>(kind: ToolKind<C>): ToolKind<C> => kind;

/**
 * The job of a tool call as it ended. `accept` begins it, as a child of the run's job, unless an earlier attempt at the call has.
 * @throws CallSuspended until it has ended; AppError `too_many_concurrent`, `quota_exceeded`; what `accept` throws.
 */
export async function jobOfCall(
  { deps, run, caller, name }: Pick<ToolSetup, "deps" | "run" | "caller" | "name">,
  { idempotencyKey, note, budgets }: Pick<ToolContext, "idempotencyKey" | "note" | "budgets">,
  accept: (given: ChildRequest) => Promise<{ job: JobRecord }>,
): Promise<JobRecord> {
  const { jobs, quotas } = deps;
  const { tenantId, jobId: parentJobId } = run;
  const jobId = derivedId("job", { at: run.createdAt, from: idempotencyKey });
  const job = await startChildJob(jobs, { tenantId, jobId, parentJobId }, async () => {
    await countStarted(deps, run);
    await quotas.check(tenantId, "openJobs");
    const parentStep = { id: name, path: idempotencyKey };
    const boundBy = await budgets();
    return accept({ caller, jobId, parentJobId, parentStep, isInteractive: true, ...(boundBy && { boundBy }) });
  });
  note({ jobId });
  if (isFinal(job.status)) return job;
  const awaited = { kind: "job" as const, runId: run._id, jobId, toolName: name };
  throw new CallSuspended([awaited], () => hasEnded(jobs, { tenantId, jobId }));
}

/** Runs that the tools of one run start, and those of the runs inside of it, all together: agents, workflows and composites. */
const MAX_STARTED = 200;

/** Counts a run that a tool is about to start. @throws AppError `quota_exceeded` beyond what one tree of runs may start. */
export async function countStarted({ store }: Pick<AgentsDeps, "store">, run: AgentRunRecord): Promise<void> {
  const { tenantId, _id, rootRunId = _id } = run;
  if (await store.agentRuns.countStarted(tenantId, rootRunId, MAX_STARTED)) return;
  const message = `This run and the agents it has called started ${MAX_STARTED} runs, which is the most. Go on without more.`;
  throw new AppError("quota_exceeded", message, { details: { limit: MAX_STARTED } });
}

/** For a tool that names something which the tenant does not have. */
export function missingTarget(what: string, param: string): AppError {
  return invalidRequest(param, `There is no such ${what}.`);
}

/**
 * Throws an error for the model. The guard says that no model was asked and nothing was kept: that is true of the work which
 * a tool was to start, but not of the agent that called it.
 */
export function throwForModel(error: unknown): never {
  if (!(error instanceof AppError) || error.code !== "compliance_blocked") throw error;
  const [reason = error.message] = error.message.split(/(?<=\.) /);
  throw new AppError("compliance_blocked", reason, { details: error.details, cause: error });
}
