import { defined } from "../defined.ts";
import { AppError, toErrorView } from "../errors.ts";
import { newId } from "../ids.ts";
import { compositeQueue } from "../jobs/queues.ts";
import { defineWork, recordsOf, submitWork, type Work } from "../jobs/work.ts";
import type { OpenExecution } from "../store/execution-store.ts";
import type { JobRecord } from "../store/job-record.ts";
import type { Caller } from "../tenancy/roles.ts";
import { type CompositeDeps, type CompositeRun, findRun } from "./deps.ts";
import { execute } from "./execute.ts";
import { type GuardedInput, guardInput } from "./guard-input.ts";
import { patternIds, patterns } from "./patterns.ts";
import { isRegulated, type ProfileId, profileIds, profiles } from "./profiles.ts";
import type { CompositeInput, ExecutionView } from "./schemas.ts";
import { selectModels } from "./select-models.ts";

/** How long a run is kept, in ms: 30 days, as its job. */
const KEPT_MS = 30 * 86_400_000;

/** Composite intelligence, bound to what it works with. */
export type Composite = {
  /**
   * The compliance guard alone, for callers that would keep something of an input before `accept`, which passes it too.
   * @throws AppError `compliance_blocked`, `unavailable`.
   */
  guard(input: GuardedInput): void;
  /**
   * Guards the input, chooses the models, records the run and submits its job, under `jobId` when given.
   * @throws AppError `compliance_blocked`, `invalid_request`, `unknown_model`, `provider_not_configured`, `budget_exhausted`,
   * `unavailable`.
   */
  accept(
    caller: Caller,
    body: CompositeInput,
    isInteractive: boolean,
    jobId?: string,
  ): Promise<{ job: JobRecord; executionId: string }>;
  work: Work;
  patterns(): ReturnType<typeof listPatterns>;
  profiles(): ReturnType<typeof listProfiles>;
  /** A run with its steps. @throws AppError `not_found`. */
  trace(tenantId: string, executionId: string): Promise<ExecutionView>;
};

export function makeComposite(deps: CompositeDeps): Composite {
  const work = makeCompositeWork(deps);
  return {
    guard: (input) => guardInput(input),
    async accept(caller, body, isInteractive, jobId = newId("job")) {
      guardInput(body); // every way to a run leads through here, so none leads round the guard
      const { tenantId, keyId } = caller;
      const { pattern, profile, input } = body;
      const selection = await selectModels(deps.gateway, { ...body, tenantId });
      await deps.gateway.requireBudget(tenantId, selection.models);
      const now = new Date();
      const record: CompositeRun = {
        _id: newId("execution"),
        tenantId,
        jobId,
        keyId,
        pattern,
        profile,
        input,
        ...selection,
        steps: [],
        isOpen: true,
        createdAt: now,
        updatedAt: now,
        expireAt: new Date(now.getTime() + KEPT_MS),
      };
      await deps.store.executions.insert(record);
      return { job: await submitWork(deps.jobs, work, { record, isInteractive }), executionId: record._id };
    },
    work,
    patterns: listPatterns,
    profiles: listProfiles,
    async trace(tenantId, executionId) {
      const execution = await findRun(deps.store, tenantId, executionId);
      return toView(execution, await deps.jobs.find(tenantId, execution.jobId));
    },
  };
}

/** Composite runs as durable work. */
function makeCompositeWork(deps: CompositeDeps): Work {
  const { executions } = deps.store;
  const records = recordsOf<OpenExecution>(executions);
  return defineWork<OpenExecution>({
    queue: compositeQueue,
    idField: "executionId",
    run: (context) => execute(deps, context),
    ...records,
    closeOrphan(execution, job) {
      if (!job) return records.reject(execution);
      const error = job.error ?? toErrorView(new AppError("cancelled", "The job was cancelled."));
      const erase = isRegulated(execution.profile as ProfileId); // as `accept` recorded it
      return executions.finish(execution.tenantId, execution._id, { error, erase });
    },
  });
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
    return defined({ id, name, regulated, guards: [...guards], disclaimer });
  });
}

function toView(execution: CompositeRun, job: JobRecord | null): ExecutionView {
  const { _id, jobId, pattern, profile, models, input, steps, result, error, createdAt, finishedAt } = execution;
  return defined({
    executionId: _id,
    jobId,
    pattern,
    profile,
    status: job?.status ?? (result ? ("completed" as const) : ("failed" as const)),
    models,
    input,
    steps: steps.map(({ startedAt, finishedAt: endedAt, ...step }, index) => ({
      index: index + 1,
      ...step,
      startedAt: startedAt.toISOString(),
      finishedAt: endedAt.toISOString(),
    })),
    result,
    error,
    createdAt: createdAt.toISOString(),
    finishedAt: finishedAt?.toISOString(),
  });
}
