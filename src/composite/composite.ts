import { notFound } from "../errors.ts";
import { newId } from "../ids.ts";
import type { JobRecord } from "../jobs/job-record.ts";
import { isFinal } from "../jobs/job-state.ts";
import type { ExecutionRecord, OpenExecution } from "../store/execution-store.ts";
import type { Caller } from "../tenancy/roles.ts";
import { acceptExecution } from "./accept.ts";
import type { CompositeDeps } from "./deps.ts";
import { type ExecuteContext, execute } from "./execute.ts";
import { type GuardedInput, guardInput } from "./guard-input.ts";
import { patternIds, patterns } from "./patterns.ts";
import { isRegulated, profileIds, profiles } from "./profiles.ts";
import type { CompositeInput, CompositeResult, ExecutionView } from "./schemas.ts";

/** Runs that one sweep looks at. */
const SWEPT = 100;

/** Composite intelligence, bound to what it works with. */
export type Composite = {
  /**
   * The compliance guard alone, for callers that would keep something of an input before `accept`, which passes it too.
   * @throws AppError `compliance_blocked`, `unavailable`.
   */
  guard(input: GuardedInput): void;
  /**
   * Takes a run in: guards its input, records it and submits its job, under `jobId` when given.
   * @throws AppError `compliance_blocked`, `invalid_request`, `unknown_model`, `provider_not_configured`, `unavailable`.
   */
  accept(
    caller: Caller,
    body: CompositeInput,
    isInteractive: boolean,
    jobId?: string,
  ): Promise<{ job: JobRecord; executionId: string }>;
  /** The work of a job. */
  execute(context: ExecuteContext): Promise<CompositeResult>;
  patterns(): ReturnType<typeof listPatterns>;
  profiles(): ReturnType<typeof listProfiles>;
  /** A run with its steps. @throws AppError `not_found`. */
  trace(tenantId: string, executionId: string): Promise<ExecutionView>;
  /** Closes runs, untouched for `olderThanMs` (30,000), whose job ended without them; answers how many it looked at. */
  sweep(olderThanMs?: number): Promise<number>;
};

export function makeComposite(deps: CompositeDeps): Composite {
  const { executions } = deps.store;
  return {
    guard: (input) => guardInput(input),
    accept: (caller, body, isInteractive, jobId = newId("job")) =>
      acceptExecution(deps, { caller, body, isInteractive, jobId }),
    execute: (context) => execute(deps, context),
    patterns: listPatterns,
    profiles: listProfiles,
    async trace(tenantId, executionId) {
      const execution = await executions.get(tenantId, executionId);
      if (!execution) throw notFound("execution");
      return toView(execution, await deps.jobs.find(tenantId, execution.jobId));
    },
    async sweep(olderThanMs = 30_000) {
      const open = await executions.unfinished({ before: new Date(Date.now() - olderThanMs), limit: SWEPT });
      for (const execution of open) await closeIfOver(deps, execution);
      return open.length;
    },
  };
}

/** A run whose job was cancelled while it waited, was given up, or was never accepted. */
async function closeIfOver({ store: { executions }, jobs }: CompositeDeps, execution: OpenExecution): Promise<void> {
  const { tenantId, _id, jobId, profile } = execution;
  const job = await jobs.find(tenantId, jobId);
  if (!job) await executions.remove(tenantId, _id);
  else if (!isFinal(job.status)) await executions.touch(tenantId, _id);
  else {
    const error = job.error ?? { type: "server_error", code: "cancelled", message: "The job was cancelled." };
    await executions.finish(tenantId, _id, { error, erase: isRegulated(profile) });
  }
}

function listPatterns() {
  return patternIds.map((id) => {
    const { name, description, minModels, defaultModels, typicalSteps } = patterns[id];
    return { id, name, description, minModels, defaultModels, typicalSteps };
  });
}

function listProfiles() {
  return profileIds.map((id) => {
    const { name, guards, disclaimer } = profiles[id];
    const regulated = isRegulated(id);
    return { id, name, regulated, guards: [...guards], ...(disclaimer === undefined ? {} : { disclaimer }) };
  });
}

function toView(execution: ExecutionRecord, job: JobRecord | null): ExecutionView {
  const { _id, jobId, pattern, profile, models, input, steps, result, error, createdAt, finishedAt } = execution;
  return {
    executionId: _id,
    jobId,
    pattern,
    profile,
    status: job?.status ?? (result ? "completed" : "failed"),
    models,
    ...(input === undefined ? {} : { input }),
    steps: steps.map(({ startedAt, finishedAt: endedAt, ...step }, index) => ({
      index: index + 1,
      ...step,
      startedAt: startedAt.toISOString(),
      finishedAt: endedAt.toISOString(),
    })),
    ...(result ? { result } : {}),
    ...(error ? { error } : {}),
    createdAt: createdAt.toISOString(),
    ...(finishedAt ? { finishedAt: finishedAt.toISOString() } : {}),
  };
}
