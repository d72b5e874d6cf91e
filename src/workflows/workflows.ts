import { AppError, notFound, toErrorView } from "../errors.ts";
import { newId } from "../ids.ts";
import type { JobRecord } from "../jobs/job-record.ts";
import { isFinal } from "../jobs/job-state.ts";
import type { WorkContext } from "../jobs/work-context.ts";
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
import type { ExecuteInput, WorkflowResult, WorkflowRunSummary, WorkflowRunView } from "./schemas.ts";

/** Runs that one sweep looks at. */
const SWEPT = 100;

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
    /** The work of a job. */
    execute(context: WorkContext): Promise<WorkflowResult>;
    /** @throws AppError `not_found`. */
    runOf(tenantId: string, workflowId: string, runId: string): Promise<WorkflowRunView>;
    /** A workflow's runs, newest first, also of one that is deleted. */
    runs(tenantId: string, workflowId: string, query: PageQuery): Promise<Page<WorkflowRunSummary>>;
    /** Stops a run: one that waits at once, one that works at its next safe point. @throws AppError `not_found`, `wrong_state`. */
    cancel(tenantId: string, workflowId: string, runId: string): Promise<WorkflowRunView>;
    /** Closes the run of a job that was cancelled while it waited; others are left as they are. */
    followCancel(job: JobRecord): Promise<void>;
    /**
     * Lets approvals expire, tells runs of decisions that they were not told of, and closes runs, untouched for `olderThanMs`
     * (30,000), whose job ended without them. Answers how many runs it looked at. Run it on a schedule.
     */
    sweep(olderThanMs?: number): Promise<number>;
  };

export function makeWorkflows(deps: WorkflowsDeps): Workflows {
  const { workflowRuns, workflows } = deps.store;
  const { sweepApprovals, ...approvals } = makeApprovals(deps);
  const find = async (tenantId: string, workflowId: string, runId: string) => {
    const run = await workflowRuns.get(tenantId, runId);
    if (run?.workflowId !== workflowId) throw notFound("run");
    return run;
  };
  const followCancel = async ({ tenantId, subject, status, kind }: JobRecord) => {
    const { runId } = subject;
    if (kind !== "workflow" || status !== "cancelled" || runId === undefined) return;
    const run = await workflowRuns.get(tenantId, runId);
    if (run) await close(deps, run, "cancelled");
  };
  return {
    ...makeWorkflowDefinitions(deps),
    ...approvals,
    start: (caller, workflowId, body, isInteractive, jobId = newId("job")) =>
      acceptRun(deps, { caller, workflowId, body, isInteractive, jobId }),
    execute: (context) => executeRun(deps, context),
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
      await followCancel(await deps.jobs.cancel(tenantId, jobId));
      return readRun(deps, await find(tenantId, workflowId, runId));
    },
    followCancel,
    async sweep(olderThanMs = 30_000) {
      await sweepApprovals();
      const open = await workflowRuns.unfinished({ before: new Date(Date.now() - olderThanMs), limit: SWEPT });
      for (const run of open) await closeIfOver(deps, run);
      return open.length;
    },
  };
}

/** A run whose job was cancelled while it waited, was given up, or was never accepted. */
async function closeIfOver(deps: WorkflowsDeps, run: OpenWorkflowRun): Promise<void> {
  const { tenantId, _id, jobId } = run;
  const job = await deps.jobs.find(tenantId, jobId);
  if (!job) await deps.store.workflowRuns.remove(tenantId, _id);
  else if (!isFinal(job.status)) await deps.store.workflowRuns.touch(tenantId, _id);
  else await close(deps, run, job.status === "failed" ? "failed" : "cancelled", job);
}

async function close(
  deps: WorkflowsDeps,
  { tenantId, _id, awaiting }: OpenWorkflowRun,
  status: "failed" | "cancelled",
  job?: JobRecord,
): Promise<void> {
  const error = job?.error ?? toErrorView(new AppError("cancelled", "The run was cancelled."));
  await deps.store.workflowRuns.finish(tenantId, _id, { status, error, finishedAt: new Date() });
  if (awaiting) await withdraw(deps, tenantId, awaiting.approvalId);
}
