import { AppError, notFound, toErrorView } from "../errors.ts";
import { newId } from "../ids.ts";
import type { JobRecord } from "../jobs/job-record.ts";
import { workflowStepsQueue } from "../jobs/queues.ts";
import { cancelWork, recordsOf, type Work } from "../jobs/work.ts";
import { mapPage, type Page, type PageQuery } from "../store/page.ts";
import type { OpenWorkflowRun } from "../store/workflow-run-store.ts";
import type { Caller } from "../tenancy/roles.ts";
import { acceptRun } from "./accept-run.ts";
import { type Approvals, makeApprovals, withdraw } from "./approvals.ts";
import { makeWorkflowDefinitions, type WorkflowDefinitions } from "./definitions.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { executeRun } from "./execute.ts";
import { readRun } from "./read-run.ts";
import { toRunSummary } from "./run-view.ts";
import type { ExecuteInput, WorkflowRunSummary, WorkflowRunView } from "./schemas.ts";

/** Workflows, their runs and approvals, bound to what they work with. */
export type Workflows = WorkflowDefinitions &
  Approvals & {
    /**
     * Takes a run in: records it and submits its job, under `jobId` when given.
     * @throws AppError `not_found`, `invalid_request` (an input that does not fit the workflow's schema), `unavailable`.
     */
    start(
      caller: Caller,
      workflowId: string,
      body: ExecuteInput,
      isInteractive: boolean,
      jobId?: string,
    ): Promise<{ job: JobRecord; runId: string }>;
    work: Work<OpenWorkflowRun>;
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
  const find = async (tenantId: string, workflowId: string, runId: string) => {
    const run = await workflowRuns.get(tenantId, runId);
    if (run?.workflowId !== workflowId) throw notFound("run");
    return run;
  };
  return {
    ...makeWorkflowDefinitions(deps),
    ...makeApprovals(deps),
    start: (caller, workflowId, body, isInteractive, jobId = newId("job")) =>
      acceptRun({ ...deps, work }, { caller, workflowId, body, isInteractive, jobId }),
    work,
    runOf: async (tenantId, workflowId, runId) => readRun(deps, await find(tenantId, workflowId, runId)),
    async runs(tenantId, workflowId, query) {
      const page = await workflowRuns.list(tenantId, workflowId, query);
      if (page.data.length === 0 && query.cursor === undefined && !(await workflows.get(tenantId, workflowId))) {
        throw notFound("workflow");
      }
      const open = page.data.filter(({ end }) => end === undefined);
      const jobStates = await deps.jobs.statesOf(
        tenantId,
        open.map(({ jobId }) => jobId),
      );
      return mapPage(page, (run) => toRunSummary(run, jobStates.get(run.jobId)));
    },
    async cancel(tenantId, workflowId, runId) {
      const { end, jobId } = await find(tenantId, workflowId, runId);
      if (end) throw new AppError("wrong_state", "The run has ended already.", { details: { status: end.status } });
      await cancelWork(deps.jobs, [work], { tenantId, jobId });
      return readRun(deps, await find(tenantId, workflowId, runId));
    },
  };
}

/** Runs of workflows as durable work. */
function makeWorkflowWork(deps: WorkflowsDeps): Work<OpenWorkflowRun> {
  const { workflowRuns } = deps.store;
  const records = recordsOf<OpenWorkflowRun>(workflowRuns);
  return {
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
  };
}
