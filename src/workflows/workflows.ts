import { checkDefinitionSize } from "../definitions/definitions.ts";
import { callbackOf, errorOf, firstLine, makeRunList, newRun, type RunRequest, takeRun } from "../definitions/runs.ts";
import { workflowStepsQueue } from "../jobs/queues.ts";
import { cancelWork, defineWork, recordsOf, submitWork, type Work } from "../jobs/work.ts";
import { defined } from "../lib/defined.ts";
import { AppError, notFound } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import { currentNesting } from "../net/call-scope.ts";
import type { WorkflowApproval } from "../store/approval-store.ts";
import type { JobRecord } from "../store/job-record.ts";
import type { OpenWorkflowRun, WorkflowRunRecord } from "../store/workflow-run-store.ts";
import { type Caller, fromStoredCaller, maySee, starterOf } from "../tenancy/roles.ts";
import { expireApproval, settleDecision } from "./approvals.ts";
import { checkDefinition } from "./check-definition.ts";
import { makeWorkflowDefinitions, toDefinition } from "./definitions.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { type DryRequest, dryRun } from "./dry-run.ts";
import { executeRun } from "./execute.ts";
import { copyResults, type RepeatRequest, toRepeated } from "./repeat-run.ts";
import { type ItemQuery, readItems } from "./run-items.ts";
import { isOverdue, readRun, toRunSummary } from "./run-view.ts";
import type { ExecuteInput, WorkflowBody, WorkflowRunView } from "./schemas.ts";
import { countSteps, eachStep, kindOf, planSteps, type Step } from "./steps.ts";
import { validate } from "./validate.ts";
import { withdrawApprovals } from "./withdraw-approvals.ts";

/** Jobs inside of which a run may be accepted, itself not counted: so a workflow calls another one up to a depth of 5. */
const MAX_NESTING = 5;

const tooDeep = `Workflows, and what they start, run inside of each other ${MAX_NESTING} deep at most.`;

type WorkflowRunBody = ExecuteInput & { callback?: { url: string } | undefined };
/** A run of a workflow to accept. */
type WorkflowRunRequest = RunRequest<WorkflowRunBody> & { workflowId: string };

export type Workflows = ReturnType<typeof makeWorkflows>;

/** Workflows, their runs and approvals, bound to what they work with. */
export function makeWorkflows(given: Omit<WorkflowsDeps, "accept">) {
  const { workflowRuns, workflows } = given.store;
  const accept = async (request: WorkflowRunRequest): Promise<{ job: JobRecord }> => {
    if (currentNesting() >= MAX_NESTING) throw new AppError("call_too_deep", tooDeep);
    const record = await toRun(deps, request);
    await takeRun(deps.quotas, record);
    await workflowRuns.insert(record);
    return { job: await submitWork(deps.jobs, work, toSubmission(record, request)) };
  };
  const repeat = async (old: WorkflowRunRecord, request: RepeatRequest): Promise<{ job: JobRecord }> => {
    const record = toRepeated(old, request);
    await checkModels(deps, record.tenantId, toDefinition(record).steps);
    await takeRun(deps.quotas, record);
    await workflowRuns.insert(record);
    try {
      await copyResults(deps, old, record);
    } catch (error) {
      await work.reject(record, error); // it has no job yet
      throw error;
    }
    return { job: await submitWork(deps.jobs, work, toSubmission(record, request)) };
  };
  const deps: WorkflowsDeps = { ...given, accept };
  const work = makeWorkflowWork(deps, repeat);
  /** A run as it is at a time: when its approval is overdue then, both expire here. */
  const find = async (caller: Caller, workflowId: string | undefined, runId: string, at = Date.now()) => {
    const run = await workflowRuns.get(caller.tenantId, runId);
    if (!run || (workflowId !== undefined && run.workflowId !== workflowId) || !maySee(caller, run.caller.keyId))
      throw notFound("run");
    if (run.end || !run.awaiting || !isOverdue(run.awaiting, at)) return run;
    await expireApproval(deps, { tenantId: run.tenantId, _id: run.awaiting.approvalId });
    return (await workflowRuns.get(run.tenantId, runId)) ?? run;
  };
  return {
    ...makeWorkflowDefinitions(deps),
    /** Checks a definition, and gives all problems. */
    validate: (tenantId: string, body: unknown) => validate(deps, tenantId, body),
    /** Applies a decision to the run that waits for it; see `settleDecision`. */
    settleDecision: (approval: WorkflowApproval) => settleDecision(deps, approval),
    /** A page of what is a tool of `/mcp`; and the one of a name. */
    listPublished: workflows.listPublished,
    findPublished: workflows.findPublished,
    /**
     * Records a run of a workflow as it is now, then submits its job.
     * @throws AppError `not_found`; `invalid_request` for an input that does not fit the workflow's schema;
     * `provider_not_configured`, `provider_key_unreadable` for a model that the tenant cannot use; `quota_exceeded`;
     * `call_too_deep` inside of too many others; `unavailable`.
     */
    accept,
    /**
     * Starts a run again that has failed, or was cancelled: a run of its own, which keeps what that has done.
     * @throws AppError `not_found`; `wrong_state` for another run; as `accept`.
     */
    async retry(caller: Caller, { workflowId, runId }: { workflowId: string; runId: string }, request: RepeatJob) {
      const old = await find(caller, workflowId, runId);
      const repeated = await repeat(old, { ...request, caller });
      await deps.jobs.repeated({ tenantId: old.tenantId, _id: old.jobId }, repeated.job._id);
      return repeated;
    },
    /** Says what a run would call; see `dryRun`. @throws AppError as `accept`. */
    dryRun: (asked: DryRequest) => dryRun(deps, toRun, asked),
    work,
    /** `workflowId`: when it must be of that workflow. @throws AppError `not_found`. */
    async runOf(caller: Caller, workflowId: string | undefined, runId: string): Promise<WorkflowRunView> {
      const at = Date.now(); // one time for all of it: a run that expires meanwhile has no output of its step yet
      return readRun(deps, await find(caller, workflowId, runId, at), at);
    },
    /** A page of the ended items of a run's list, in order. @throws AppError `not_found`. */
    async items(caller: Caller, { workflowId, runId }: { workflowId: string; runId: string }, query: ItemQuery) {
      await find(caller, workflowId, runId);
      return readItems(deps, caller.tenantId, runId, query);
    },
    runs: makeRunList(deps.jobs, {
      what: "workflow",
      runs: workflowRuns,
      definitions: workflows,
      toSummary: toRunSummary,
    }),
    /** Stops a run: one that waits at once, one that works at its next safe point. @throws AppError `not_found`, `wrong_state`. */
    async cancel(caller: Caller, workflowId: string, runId: string): Promise<WorkflowRunView> {
      const { end, jobId, tenantId } = await find(caller, workflowId, runId);
      if (end) throw new AppError("wrong_state", "The run has ended already.", { details: { status: end.status } });
      await cancelWork(deps.jobs, [work], { tenantId, jobId });
      return readRun(deps, await find(caller, workflowId, runId));
    },
  };
}

function toSubmission(record: WorkflowRunRecord, { caller, isInteractive, parentJobId, parentStep }: RepeatRequest) {
  const steps = countSteps(planSteps(toDefinition(record).steps));
  const input = record.input === undefined ? undefined : firstLine(JSON.parse(record.input));
  const about = { title: record.name, input, subject: { workflowId: record.workflowId }, steps };
  return { record, isInteractive, ...about, ...starterOf(caller), parentJobId, parentStep };
}

/** A draft as if it were kept, checked as its creation checks it. */
async function readDraft(deps: WorkflowsDeps, { caller, draft }: { caller: Caller; draft: WorkflowBody }) {
  checkDefinitionSize(draft, "steps");
  await checkDefinition(deps, { tenantId: caller.tenantId, body: draft }, (problem) => {
    throw problem;
  });
  const definition = JSON.stringify(draft).toWellFormed();
  return { _id: newId("workflow"), version: 0, name: draft.name, definition };
}

/** The record of a run that is about to be accepted, or of a dry one, after all that can be refused now was checked. */
async function toRun(
  deps: WorkflowsDeps,
  request: RunRequest<WorkflowRunBody> & DryRequest["of"],
): Promise<WorkflowRunRecord> {
  const { tenantId, keyId } = request.caller;
  const workflow =
    "draft" in request ? await readDraft(deps, request) : await deps.store.workflows.get(tenantId, request.workflowId);
  if (!workflow) throw notFound("workflow");
  const { _id: workflowId, version, name, definition } = workflow;
  const input = await deps.guards.take({ tenantId, keyId, workflowId }, "input", request.body.input);
  const { inputSchema, steps } = toDefinition({ definition });
  if (inputSchema !== undefined) {
    const asker = { tenantId, key: `${workflowId}:${version}` };
    await deps.evaluator.checkInput(asker, { inputSchema, input: input ?? null });
  }
  await checkModels(deps, tenantId, steps);
  return {
    _id: newId("workflowRun"),
    ...newRun(request),
    workflowId,
    version,
    name,
    definition,
    ...(input === undefined ? {} : { input: JSON.stringify(input).toWellFormed() }),
    isWatched: true,
    ...defined({ callback: callbackOf(request) }),
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

type RepeatJob = Omit<RepeatRequest, "caller">;

/** Runs of workflows as durable work. */
function makeWorkflowWork(
  deps: WorkflowsDeps,
  repeat: (old: WorkflowRunRecord, request: RepeatRequest) => Promise<{ job: JobRecord }>,
): Work {
  const { workflowRuns } = deps.store;
  const records = recordsOf<OpenWorkflowRun>(workflowRuns);
  /** The run goes last: a sweep ends what was cut in between. */
  const reject = async ({ tenantId, _id }: OpenWorkflowRun) => {
    await workflowRuns.removeResults(tenantId, _id);
    await workflowRuns.remove(tenantId, _id);
  };
  return defineWork<OpenWorkflowRun>({
    queue: workflowStepsQueue,
    idField: "runId",
    run: (context) => executeRun(deps, context),
    async repeat({ tenantId, _id }, { caller, ...request }) {
      const old = await workflowRuns.get(tenantId, _id);
      if (!old) throw notFound("run");
      return repeat(old, { ...request, caller: fromStoredCaller(tenantId, caller) });
    },
    ...records,
    reject,
    async closeOrphan(run, job) {
      if (!job) return reject(run);
      const { tenantId, _id } = run;
      const status = job.status === "failed" ? "failed" : "cancelled";
      const withdraw = async () => {
        const whole = await workflowRuns.get(tenantId, _id);
        if (whole) await withdrawApprovals(deps, whole);
      };
      await withdraw(); // first: nothing looks at a run again that has ended
      await workflowRuns.finish(tenantId, _id, { status, error: errorOf(job, "run"), finishedAt: new Date() });
      await withdraw(); // what a worker has asked for meanwhile
    },
  });
}
