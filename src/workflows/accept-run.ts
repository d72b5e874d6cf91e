import { AppError, notFound } from "../errors.ts";
import { newId } from "../ids.ts";
import type { JobRecord } from "../jobs/job-record.ts";
import { submitWork, type Work } from "../jobs/work.ts";
import type { OpenWorkflowRun, WorkflowRunRecord } from "../store/workflow-run-store.ts";
import type { Caller } from "../tenancy/roles.ts";
import { toInputSchema } from "./check-definition.ts";
import { toDefinition } from "./definitions.ts";
import type { WorkflowsDeps } from "./deps.ts";
import type { ExecuteInput } from "./schemas.ts";
import { isOutOfTime, withinTime } from "./within-time.ts";

/** Longest check of an input against its schema, in ms: a schema may hold any regular expression. */
const CHECK_MS = 200;

export type RunAcceptance = {
  caller: Caller;
  workflowId: string;
  body: ExecuteInput;
  isInteractive: boolean;
  jobId: string;
};

/**
 * Records a run of a workflow as it is now, then submits its job.
 * @throws AppError `not_found`; `invalid_request` for an input that does not fit the workflow's schema; `unavailable`.
 */
export async function acceptRun(
  deps: WorkflowsDeps & { work: Work<OpenWorkflowRun> },
  { caller, workflowId, body, isInteractive, jobId }: RunAcceptance,
): Promise<{ job: JobRecord; runId: string }> {
  const { tenantId, keyId, subject, role } = caller;
  const workflow = await deps.store.workflows.get(tenantId, workflowId);
  if (!workflow) throw notFound("workflow");
  const { inputSchema } = toDefinition(workflow);
  if (inputSchema !== undefined) checkInput(inputSchema, body.input);
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

function checkInput(inputSchema: Record<string, unknown>, input: unknown): void {
  const schema = toInputSchema(inputSchema);
  const parsed = attempt(() => withinTime(CHECK_MS, () => schema.safeParse(input ?? null)));
  const issue = parsed.error?.issues[0];
  if (!issue) return;
  const path = issue.path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("");
  throw new AppError("invalid_request", issue.message, { param: `input${path}` });
}

function attempt<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!isOutOfTime(error)) throw error;
    throw new AppError("invalid_request", `The check of the input takes longer than ${CHECK_MS} ms.`, {
      param: "input",
    });
  }
}
