import { AppError, notFound, toErrorView } from "../errors.ts";
import { newId } from "../ids.ts";
import type { JobRecord } from "../jobs/job-record.ts";
import { compositeQueue } from "../jobs/queues.ts";
import { recordsOf, type Work } from "../jobs/work.ts";
import type { ExecutionRecord, OpenExecution } from "../store/execution-store.ts";
import type { Caller } from "../tenancy/roles.ts";
import { acceptExecution } from "./accept.ts";
import type { CompositeDeps } from "./deps.ts";
import { execute } from "./execute.ts";
import { type GuardedInput, guardInput } from "./guard-input.ts";
import { patternIds, patterns } from "./patterns.ts";
import { isRegulated, profileIds, profiles } from "./profiles.ts";
import type { CompositeInput, ExecutionView } from "./schemas.ts";

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
  work: Work<OpenExecution>;
  patterns(): ReturnType<typeof listPatterns>;
  profiles(): ReturnType<typeof listProfiles>;
  /** A run with its steps. @throws AppError `not_found`. */
  trace(tenantId: string, executionId: string): Promise<ExecutionView>;
};

export function makeComposite(deps: CompositeDeps): Composite {
  const { executions } = deps.store;
  const work = makeCompositeWork(deps);
  return {
    guard: (input) => guardInput(input),
    accept: (caller, body, isInteractive, jobId = newId("job")) =>
      acceptExecution({ ...deps, work }, { caller, body, isInteractive, jobId }),
    work,
    patterns: listPatterns,
    profiles: listProfiles,
    async trace(tenantId, executionId) {
      const execution = await executions.get(tenantId, executionId);
      if (!execution) throw notFound("execution");
      return toView(execution, await deps.jobs.find(tenantId, execution.jobId));
    },
  };
}

/** Composite runs as durable work. */
function makeCompositeWork(deps: CompositeDeps): Work<OpenExecution> {
  const { executions } = deps.store;
  const records = recordsOf<OpenExecution>(executions);
  return {
    queue: compositeQueue,
    idField: "executionId",
    run: (context) => execute(deps, context),
    ...records,
    closeOrphan(execution, job) {
      if (!job) return records.reject(execution);
      const error = job.error ?? toErrorView(new AppError("cancelled", "The job was cancelled."));
      return executions.finish(execution.tenantId, execution._id, { error, erase: isRegulated(execution.profile) });
    },
  };
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
