import type { WorkflowRunRecord } from "../store/workflow-run-store.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { toRunView } from "./run-view.ts";
import type { WorkflowRunView } from "./schemas.ts";

/** A run as it is read back, with its steps and what its job says. */
export async function readRun(
  { store, jobs }: Pick<WorkflowsDeps, "store" | "jobs">,
  run: WorkflowRunRecord,
): Promise<WorkflowRunView> {
  const { tenantId, _id, jobId } = run;
  const [job, steps] = await Promise.all([jobs.find(tenantId, jobId), store.workflowRuns.steps(tenantId, _id)]);
  return toRunView(run, steps, job);
}
