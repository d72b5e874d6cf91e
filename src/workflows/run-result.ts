import { fromErrorView } from "../lib/errors.ts";
import type { WorkflowRunEnd, WorkflowRunRecord } from "../store/workflow-run-store.ts";
import type { WorkflowResult } from "./schemas.ts";

/** The result of a run that has ended. @throws AppError when it failed or was cancelled. */
export function toResult(run: WorkflowRunRecord, { status, output, error }: WorkflowRunEnd): WorkflowResult {
  const { _id: runId, workflowId } = run;
  if (status === "failed" || status === "cancelled") throw fromErrorView(error, "The run failed.");
  return { runId, workflowId, status, ...(output === undefined ? {} : { output: JSON.parse(output) }) };
}
