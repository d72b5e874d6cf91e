import { errorOf, firstLine, type RunRequest, sumSpent, takeRun } from "../definitions/runs.ts";
import { compositeQueue } from "../jobs/queues.ts";
import { defineWork, recordsOf, submitWork, type Work } from "../jobs/work.ts";
import { defined, toView } from "../lib/defined.ts";
import { AppError, notFound } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import type { OpenExecution } from "../store/execution-store.ts";
import type { JobRecord } from "../store/job-record.ts";
import { type Caller, fromStoredCaller, maySee, starterOf } from "../tenancy/roles.ts";
import { type CompositeDeps, type CompositeRun, execute, findRun } from "./execute.ts";
import { guardInput } from "./guard-input.ts";
import { patternIds, patterns } from "./patterns.ts";
import { isRegulated, type ProfileId, profileIds, profiles } from "./profiles.ts";
import type { CompositeInput, ExecutionView } from "./schemas.ts";

/** How long a run is kept, in ms: 30 days, as its job. */
const KEPT_MS = 30 * 86_400_000;

export type Composite = ReturnType<typeof makeComposite>;

/** Composite intelligence, bound to what it works with. */
export function makeComposite(deps: CompositeDeps) {
  const accept = async (request: RunRequest<CompositeInput>): Promise<{ job: JobRecord }> => {
    const { caller, body, isInteractive, jobId = newId("job"), parentJobId, parentStep, boundBy } = request;
    guardInput(body); // every run begins here, so none bypasses the guard
    const { tenantId, keyId } = caller;
    const { pattern, profile } = body;
    const { input } = await deps.guards.take(caller, "input", { input: body.input });
    const selection = await selectModels(deps.gateway, { ...body, input, tenantId });
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
      ...(boundBy && { boundBy }),
      steps: [],
      isOpen: true,
      createdAt: now,
      updatedAt: now,
      expireAt: new Date(now.getTime() + KEPT_MS),
    };
    await takeRun(deps.quotas, record);
    await deps.store.executions.insert(record);
    const shown = isRegulated(profile) ? undefined : firstLine(input); // of those, nothing of what is said stays
    const parent = { parentJobId, parentStep };
    const about = { title: `${pattern} (${profile})`, input: shown, ...starterOf(caller), ...parent };
    return { job: await submitWork(deps.jobs, work, { record, isInteractive, ...about }) };
  };
  const work = makeCompositeWork(deps, accept);
  return {
    /** The compliance guard alone, for callers that keep something of an input before `accept`. @throws as `guardInput`. */
    guard: guardInput,
    /**
     * Guards the input, chooses the models, records the run and submits its job, under `jobId` when given.
     * @throws AppError `compliance_blocked`, `invalid_request`, `unknown_model`, `provider_not_configured`, `budget_exhausted`,
     * `quota_exceeded`, `unavailable`.
     */
    accept,
    work,
    /** What the calls of a run have used so far. @throws AppError `not_found`. */
    spentOf: async (tenantId: string, executionId: string) =>
      sumSpent((await findRun(deps, tenantId, executionId)).steps),
    patterns: listPatterns,
    profiles: listProfiles,
    /** A run with its steps. @throws AppError `not_found`. */
    async trace(caller: Caller, executionId: string): Promise<ExecutionView> {
      const { tenantId } = caller;
      const execution = await findRun(deps, tenantId, executionId);
      if (!maySee(caller, execution.keyId)) throw notFound("execution");
      return toExecutionView(execution, await deps.jobs.find(tenantId, execution.jobId));
    },
  };
}

/**
 * The models of a run: those that the caller names, of which the first one also judges; else the profile's, as far as the
 * tenant can use them, then others that it can use. Different ones come first; where there are too few they serve again.
 * @throws AppError `unknown_model`, `provider_not_configured`.
 */
async function selectModels(
  gateway: CompositeDeps["gateway"],
  { tenantId, pattern, profile, input, models: named }: CompositeInput & { tenantId: string },
): Promise<{ models: string[]; judge: string }> {
  const { minModels, defaultModels } = patterns[pattern];
  const hasNames = named && named.length > 0;
  const usable = hasNames ? [] : await gateway.usableModels(tenantId);
  const preferred = profiles[profile].models.filter((id) => usable.includes(id));
  const available = hasNames
    ? await Promise.all(named.map((name, at) => resolve(gateway, { tenantId, name, at, input })))
    : [...new Set([...preferred, ...usable])];
  const count = hasNames ? Math.max(minModels, named.length) : defaultModels;
  const models = Array.from({ length: count }, (_, index) => available[index % available.length] ?? "");
  return { models, judge: models[0] ?? "" };
}

/** The model that a name stands for; `auto` is chosen once, by the input, so that members can be compared. */
async function resolve(
  gateway: CompositeDeps["gateway"],
  { tenantId, name, at, input }: { tenantId: string; name: string; at: number; input: string },
): Promise<string> {
  try {
    return await gateway.resolveModel(tenantId, name, input);
  } catch (error) {
    if (!(error instanceof AppError) || error.param !== "model") throw error;
    throw new AppError(error.code, error.message, { param: `models[${at}]`, details: error.details, cause: error });
  }
}

/** Composite runs as durable work. */
function makeCompositeWork(
  deps: CompositeDeps,
  accept: (request: RunRequest<CompositeInput>) => Promise<{ job: JobRecord }>,
): Work {
  const { executions } = deps.store;
  const records = recordsOf<OpenExecution>(executions);
  return defineWork<OpenExecution>({
    queue: compositeQueue,
    idField: "executionId",
    run: (context) => execute(deps, context),
    ...records,
    async repeat({ tenantId, _id }, { caller, ...request }) {
      const { pattern, profile, input, models } = await findRun(deps, tenantId, _id);
      if (input === undefined) throw new AppError("wrong_state", "The input of this run was not kept.");
      const body = { pattern, profile, input, models };
      return accept({ ...request, caller: fromStoredCaller(tenantId, caller), body });
    },
    closeOrphan(execution, job) {
      if (!job) return records.reject(execution);
      const erase = isRegulated(execution.profile as ProfileId); // as `accept` recorded it
      return executions.finish(execution.tenantId, execution._id, { error: errorOf(job), erase });
    },
  });
}

function listPatterns() {
  return patternIds.map((id) => {
    const { run: _run, ...about } = patterns[id];
    return { id, ...about };
  });
}

function listProfiles() {
  return profileIds.map((id) => {
    const { name, guards, disclaimer } = profiles[id];
    return defined({ id, name, regulated: isRegulated(id), guards: [...guards], disclaimer });
  });
}

function toExecutionView(execution: CompositeRun, job: JobRecord | null): ExecutionView {
  const { _id: executionId, jobId, pattern, profile, models, input, result, error, createdAt, finishedAt } = execution;
  const status = job?.status ?? (result ? "completed" : "failed");
  const steps = execution.steps.map((step, index) => toView({ index: index + 1, ...step }));
  const about = { executionId, jobId, pattern, profile, status, models, input };
  return toView({ ...about, steps, result, error, guard: job?.guard, createdAt, finishedAt });
}
