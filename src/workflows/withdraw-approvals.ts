import { derivedId } from "../lib/ids.ts";
import type { WorkflowRunRecord } from "../store/workflow-run-store.ts";
import type { WorkflowsDeps } from "./deps.ts";

type AskingRun = Pick<WorkflowRunRecord, "tenantId" | "_id" | "createdAt" | "awaiting">;

/** The id of the decision that a step of a run asks for, the same at every attempt. */
export const approvalIdOf = ({ _id, createdAt }: Pick<WorkflowRunRecord, "_id" | "createdAt">, path: string) =>
  derivedId("approval", { at: createdAt, from: `${_id}:${path}` });

/** Takes back the decisions that a run, which has ended, has asked for. Safe to repeat. */
export async function withdrawApprovals({ store }: Pick<WorkflowsDeps, "store">, run: AskingRun): Promise<void> {
  const { tenantId, _id: runId, awaiting } = run;
  const asked = new Set(awaiting ? [awaiting.approvalId] : []);
  for (const path of await store.workflowRuns.openOfType(tenantId, runId, "human_approval"))
    asked.add(approvalIdOf(run, path));
  for (const approvalId of asked)
    await store.approvals.decide(tenantId, approvalId, { status: "cancelled" }, new Date());
}
