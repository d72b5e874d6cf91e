import { type Spent, sumSpent } from "../definitions/runs.ts";
import type { Store } from "../store/store.ts";
import type { WorkflowStepRecord } from "../store/workflow-step-store.ts";

type Paid = Pick<WorkflowStepRecord, "path" | "spent">;

/**
 * What a run has used, by the results of its steps. A list over items that did not complete has no sum of its own: with `hasItems`, its
 * items count, and the steps of those that had not ended.
 */
export async function spentOfRun(
  { workflowRuns }: Pick<Store, "workflowRuns">,
  { tenantId, _id: runId }: { tenantId: string; _id: string },
  { steps, hasItems }: { steps: readonly WorkflowStepRecord[]; hasItems: boolean },
): Promise<Spent> {
  if (!hasItems) return sumSpent(steps.flatMap(({ spent }) => spent ?? []));
  return sumOutermost([...steps, ...(await workflowRuns.spentOnItems(tenantId, runId))]);
}

/** The sum of results that are not part of another one with a sum. */
function sumOutermost(paid: readonly Paid[]): Spent {
  const sums = new Set(paid.flatMap(({ path, spent }) => (spent === undefined ? [] : [path])));
  return sumSpent(
    paid.flatMap(({ path, spent }) => (spent && !outerPaths(path).some((outer) => sums.has(outer)) ? spent : [])),
  );
}

/** Paths of what a path is within: of `3/do[17]/0` these are `3/do[17]` and `3`. */
const outerPaths = (path: string): string[] => [...path.matchAll(/\//g)].map(({ index }) => path.slice(0, index));
