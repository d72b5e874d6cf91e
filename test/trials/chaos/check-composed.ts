import type { WorkflowItemRecord } from "../../../src/store/workflow-step-store.ts";
import {
  type WorkflowStepRecord,
  workflowItemCollection,
  workflowStepCollection,
} from "../../../src/store/workflow-step-store.ts";
import type { ChildrenOf, JobOf } from "./check-jobs.ts";
import { COMPOSED_CHILDREN, COMPOSED_STEPS } from "./composed.ts";
import { about, type Check, type Evidence } from "./evidence.ts";

/**
 * A completed run with every type of step has each result once, and has started each of its jobs once; none of a run that has
 * ended is still at work.
 */
export async function checkComposed(
  { db, load }: Evidence,
  { jobOf, childrenOf }: { jobOf: JobOf; childrenOf: ChildrenOf },
): Promise<Check> {
  const steps = await db.collection<WorkflowStepRecord>(workflowStepCollection.name).find().toArray();
  const items = await db.collection<WorkflowItemRecord>(workflowItemCollection.name).find().toArray();
  const stepsOf = Map.groupBy(steps, ({ runId }) => runId);
  const itemsOf = Map.groupBy(items, ({ runId }) => runId);
  const breaches: string[] = [];
  const runs = load.accepted.filter(({ work }) => work === "composed");
  let children = 0;
  for (const accepted of runs) {
    const job = jobOf(accepted);
    const started = childrenOf(accepted);
    children += started.length;
    const kinds = started.map(({ kind }) => kind).sort();
    if (new Set(kinds).size !== kinds.length) breaches.push(`${about(accepted)} has started ${kinds.join(", ")}`);
    for (const { _id, status } of started)
      if (!["completed", "failed", "cancelled"].includes(status))
        breaches.push(`${about(accepted)} has ended, and its job ${_id} is ${status}`);
    if (job?.status !== "completed") continue;
    const runId = job.subject.runId ?? "";
    const there = { steps: stepsOf.get(runId)?.length ?? 0, items: itemsOf.get(runId)?.length ?? 0 };
    if (there.steps !== COMPOSED_STEPS.steps || there.items !== COMPOSED_STEPS.items)
      breaches.push(`${about(accepted)} has ${JSON.stringify(there)} results for ${JSON.stringify(COMPOSED_STEPS)}`);
    const whole = started.filter(({ status }) => status === "completed").map(({ kind }) => kind);
    if (whole.sort().join() !== COMPOSED_CHILDREN.join())
      breaches.push(`${about(accepted)} completed with the jobs ${whole.join(", ") || "none"}`);
  }
  return {
    promise: "each step of a run with every type of step is recorded once, and each of its jobs started once",
    found: `${runs.length} runs, ${children} jobs that they started`,
    breaches,
  };
}
