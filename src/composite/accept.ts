import { newId } from "../ids.ts";
import type { JobRecord } from "../jobs/job-record.ts";
import { submitWork, type Work } from "../jobs/work.ts";
import type { ExecutionRecord, OpenExecution } from "../store/execution-store.ts";
import type { Caller } from "../tenancy/roles.ts";
import type { CompositeDeps } from "./deps.ts";
import { guardInput } from "./guard-input.ts";
import type { CompositeInput } from "./schemas.ts";
import { checkBudget, selectModels } from "./select-models.ts";

/** How long a run is kept, in ms: 30 days, as its job. */
const KEPT_MS = 30 * 86_400_000;

export type CompositeAcceptance = { caller: Caller; body: CompositeInput; isInteractive: boolean; jobId: string };

/**
 * Lets an input pass the guard, chooses the models, records the run and submits its job, in this order: every way to a run
 * leads through here, so none leads round the guard.
 * @throws AppError `compliance_blocked`, `invalid_request`, `unknown_model`, `provider_not_configured`, `budget_exhausted`,
 * `unavailable`.
 */
export async function acceptExecution(
  deps: CompositeDeps & { work: Work<OpenExecution> },
  { caller, body, isInteractive, jobId }: CompositeAcceptance,
): Promise<{ job: JobRecord; executionId: string }> {
  guardInput(body);
  const { tenantId, keyId } = caller;
  const { pattern, profile, input } = body;
  const { models, judge } = await selectModels(deps.gateway, { tenantId, pattern, profile, models: body.models });
  await checkBudget(deps.gateway, tenantId, models);
  const now = new Date();
  const record: ExecutionRecord = {
    _id: newId("execution"),
    tenantId,
    jobId,
    keyId,
    pattern,
    profile,
    input,
    models,
    judge,
    steps: [],
    isOpen: true,
    createdAt: now,
    updatedAt: now,
    expireAt: new Date(now.getTime() + KEPT_MS),
  };
  await deps.store.executions.insert(record);
  return { job: await submitWork(deps.jobs, deps.work, { record, isInteractive }), executionId: record._id };
}
