import { AppError, notFound } from "../errors.ts";
import { newId } from "../ids.ts";
import type { JobRecord } from "../jobs/job-record.ts";
import { submitWork, type Work } from "../jobs/work.ts";
import type { OpenWorkflowRun, WorkflowRunRecord } from "../store/workflow-run-store.ts";
import type { Caller } from "../tenancy/roles.ts";
import { toDefinition } from "./definitions.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { eachStep, planSteps } from "./plan.ts";
import type { ExecuteInput } from "./schemas.ts";
import type { Step } from "./step-schemas.ts";

export type RunAcceptance = {
  caller: Caller;
  workflowId: string;
  body: ExecuteInput;
  isInteractive: boolean;
  jobId: string;
};

/**
 * Records a run of a workflow as it is now, then submits its job.
 * @throws AppError `not_found`; `invalid_request` for an input that does not fit the workflow's schema;
 * `provider_not_configured`, `provider_key_unreadable` for a model that the tenant cannot use; `unavailable`.
 */
export async function acceptRun(
  deps: WorkflowsDeps & { work: Work<OpenWorkflowRun> },
  { caller, workflowId, body, isInteractive, jobId }: RunAcceptance,
): Promise<{ job: JobRecord; runId: string }> {
  const { tenantId, keyId, subject, role } = caller;
  const workflow = await deps.store.workflows.get(tenantId, workflowId);
  if (!workflow) throw notFound("workflow");
  const { inputSchema, steps } = toDefinition(workflow);
  if (inputSchema !== undefined) {
    const asker = { tenantId, key: `${workflowId}:${workflow.version}` };
    await deps.evaluator.checkInput(asker, { inputSchema, input: body.input ?? null });
  }
  await checkModels(deps, tenantId, steps);
  const now = new Date();
  const run: WorkflowRunRecord = {
    _id: newId("workflowRun"),
    tenantId,
    workflowId,
    version: workflow.version,
    name: workflow.name,
    definition: workflow.definition,
    jobId,
    caller: { keyId, subject, role },
    ...(body.input === undefined ? {} : { input: JSON.stringify(body.input).toWellFormed() }),
    isOpen: true,
    isWatched: true,
    createdAt: now,
    updatedAt: now,
  };
  await deps.store.workflowRuns.insert(run);
  const job = await submitWork(deps.jobs, deps.work, { record: run, isInteractive, subject: { workflowId } });
  return { job, runId: run._id };
}

/** A run with a model that cannot be called would fail at that step, after the steps before it were paid for. */
async function checkModels({ gateway }: WorkflowsDeps, tenantId: string, steps: readonly Step[]): Promise<void> {
  const fields = new Map<string, string>();
  for (const { step, field } of eachStep(planSteps(steps))) {
    if (step.type === "ai_completion" && !fields.has(step.model)) fields.set(step.model, `${field}.model`);
  }
  for (const [model, param] of fields) {
    try {
      await gateway.resolveModel(tenantId, model);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const { code, message, details, retryable } = error;
      throw new AppError(code, message, { param, details, retryable, cause: error });
    }
  }
}
