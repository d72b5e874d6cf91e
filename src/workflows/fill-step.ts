import type { WorkContext } from "../jobs/work.ts";
import type { WorkflowRunRecord } from "../store/workflow-run-store.ts";
import type { WorkflowsDeps } from "./deps.ts";
import type { PlannedStep } from "./plan.ts";
import type { ScopeTexts } from "./scope-texts.ts";
import { fieldsOf } from "./step-texts.ts";

/**
 * The values of a step's fields, by their names, with its expressions filled in.
 * @throws AppError `invalid_request`, its `param` naming the field; EvaluatorBusy; the signal's reason.
 */
export function fillStep({
  deps,
  run,
  planned,
  scope,
  context,
}: {
  deps: Pick<WorkflowsDeps, "evaluator">;
  run: WorkflowRunRecord;
  planned: PlannedStep;
  scope: ScopeTexts;
  context: Pick<WorkContext, "signal">;
}): Promise<Record<string, unknown>> {
  const { tenantId, workflowId, version } = run;
  const key = `${workflowId}:${version}:${planned.path}`;
  const { field, step } = planned;
  return deps.evaluator.fill({ tenantId, key, signal: context.signal }, { field, fields: fieldsOf(step), scope });
}
