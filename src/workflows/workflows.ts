import { AppError, notFound, toErrorView } from "../errors.ts";
import { newId } from "../ids.ts";
import { workflowStepsQueue } from "../jobs/queues.ts";
import { cancelWork, defineWork, recordsOf, submitWork, type Work } from "../jobs/work.ts";
import { listRuns } from "../run-lists.ts";
import type { JobRecord } from "../store/job-record.ts";
import type { Page, PageQuery } from "../store/page.ts";
import type { OpenWorkflowRun, WorkflowRunRecord } from "../store/workflow-run-store.ts";
import type { Caller } from "../tenancy/roles.ts";
import { type Approvals, makeApprovals, withdraw } from "./approvals.ts";
import { makeWorkflowDefinitions, toDefinition, type WorkflowDefinitions } from "./definitions.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { executeRun } from "./execute.ts";
import { eachStep, planSteps } from "./plan.ts";
import { isOverdue, readRun, toRunSummary } from "./run-view.ts";
import type { ExecuteInput, WorkflowRunSummary, WorkflowRunView } from "./schemas.ts";
import { kindOf, type Step } from "./steps.ts";

/** A run to accept; its job gets `jobId`, or an id of its own. */
export type WorkflowRunRequest = {
  caller: Caller;
  workflowId: string;
  body: ExecuteInput;
  isInteractive: boolean;
  jobId?: string;
};

/** Workflows, their runs and approvals, bound to what they work with. */
export type Workflows = WorkflowDefinitions &
  Approvals & {
    /**
     * Records a run of a workflow as it is now, then submits its job.
     * @throws AppError `not_found`; `invalid_request` for an input that does not fit the workflow's schema;
     * `provider_not_configured`, `provider_key_unreadable` for a model that the tenant cannot use; `unavailable`.
     */
    accept(request: WorkflowRunRequest): Promise<{ job: JobRecord; runId: string }>;
    work: Work;
    /** @throws AppError `not_found`. */
    runOf(tenantId: string, workflowId: string, runId: string): Promise<WorkflowRunView>;
    /** A workflow's runs, newest first, also of one that is deleted. */
    runs(tenantId: string, workflowId: string, query: PageQuery): Promise<Page<WorkflowRunSummary>>;
    /** Stops a run: one that waits at once, one that works at its next safe point. @throws AppError `not_found`, `wrong_state`. */
    cancel(tenantId: string, workflowId: string, runId: string): Promise<WorkflowRunView>;
    /** Lets approvals expire, and resumes runs whose decision did not reach them. Run it on a schedule. */
    sweepApprovals(): Promise<unknown>;
  };

export function makeWorkflows(deps: WorkflowsDeps): Workflows {
  const { workflowRuns, workflows } = deps.store;
  const work = makeWorkflowWork(deps);
  const approvals = makeApprovals(deps);
  const find = async (tenantId: string, workflowId: string, runId: string) => {
    const run = await workflowRuns.get(tenantId, runId);
    if (run?.workflowId !== workflowId) throw notFound("run");
    if (run.end || !run.awaiting || !isOverdue(run.awaiting)) return run;
    await approvals.expireNow(tenantId, run.awaiting.approvalId);
    return (await workflowRuns.get(tenantId, runId)) ?? run;
  };
  return {
    ...makeWorkflowDefinitions(deps),
    ...approvals,
    async accept(request) {
      const record = await toRun(deps, request);
      await workflowRuns.insert(record);
      const { isInteractive, workflowId } = request;
      const job = await submitWork(deps.jobs, work, { record, isInteractive, subject: { workflowId } });
      return { job, runId: record._id };
    },
    work,
    runOf: async (tenantId, workflowId, runId) => readRun(deps, await find(tenantId, workflowId, runId)),
    async runs(tenantId, workflowId, query) {
      const page = await workflowRuns.list(tenantId, workflowId, query);
      const hasRuns = page.data.length > 0 || query.cursor !== undefined;
      if (!hasRuns && !(await workflows.get(tenantId, workflowId))) throw notFound("workflow");
      return listRuns(deps.jobs, { tenantId, page, toSummary: toRunSummary });
    },
    async cancel(tenantId, workflowId, runId) {
      const { end, jobId } = await find(tenantId, workflowId, runId);
      if (end) throw new AppError("wrong_state", "The run has ended already.", { details: { status: end.status } });
      await cancelWork(deps.jobs, [work], { tenantId, jobId });
      return readRun(deps, await find(tenantId, workflowId, runId));
    },
  };
}

/** The record of a run that is about to be accepted, after all that can be refused now was checked. */
async function toRun(
  deps: WorkflowsDeps,
  { caller, workflowId, body, jobId = newId("job") }: WorkflowRunRequest,
): Promise<WorkflowRunRecord> {
  const { tenantId, keyId, subject, role } = caller;
  const workflow = await deps.store.workflows.get(tenantId, workflowId);
  if (!workflow) throw notFound("workflow");
  const { version, name, definition } = workflow;
  const { inputSchema, steps } = toDefinition(workflow);
  if (inputSchema !== undefined) {
    const asker = { tenantId, key: `${workflowId}:${version}` };
    await deps.evaluator.checkInput(asker, { inputSchema, input: body.input ?? null });
  }
  await checkModels(deps, tenantId, steps);
  const now = new Date();
  return {
    _id: newId("workflowRun"),
    tenantId,
    workflowId,
    version,
    name,
    definition,
    jobId,
    caller: { keyId, subject, role },
    ...(body.input === undefined ? {} : { input: JSON.stringify(body.input).toWellFormed() }),
    isOpen: true,
    isWatched: true,
    createdAt: now,
    updatedAt: now,
  };
}

/** A run with a model that cannot be called would fail at that step, after the steps before it were paid for. */
async function checkModels({ gateway }: WorkflowsDeps, tenantId: string, steps: readonly Step[]): Promise<void> {
  const fields = new Map<string, string>();
  for (const { step, field } of eachStep(planSteps(steps))) {
    const model = kindOf(step).model?.(step);
    if (model !== undefined && !fields.has(model)) fields.set(model, `${field}.model`);
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

/** Runs of workflows as durable work. */
function makeWorkflowWork(deps: WorkflowsDeps): Work {
  const { workflowRuns } = deps.store;
  const records = recordsOf<OpenWorkflowRun>(workflowRuns);
  return defineWork<OpenWorkflowRun>({
    queue: workflowStepsQueue,
    idField: "runId",
    run: (context) => executeRun(deps, context),
    ...records,
    async closeOrphan(run, job) {
      if (!job) return void (await records.reject(run));
      const { tenantId, _id, awaiting } = run;
      const status = job.status === "failed" ? "failed" : "cancelled";
      const error = job.error ?? toErrorView(new AppError("cancelled", "The run was cancelled."));
      await workflowRuns.finish(tenantId, _id, { status, error, finishedAt: new Date() });
      if (awaiting) await withdraw(deps, tenantId, awaiting.approvalId);
    },
  });
}
