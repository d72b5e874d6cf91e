import { defined } from "../lib/defined.ts";
import type { OpenStepRecord } from "../store/workflow-step-store.ts";
import type { Walk } from "./course.ts";
import type { Frame } from "./frame.ts";
import type { PlannedStep } from "./steps.ts";

/** One attempt at a step. `deadlineAt`: when its own time is over, in ms since 1970. */
export type Attempt = Pick<OpenStepRecord, "path" | "id" | "type" | "attempts" | "startedAt"> & {
  planned: PlannedStep;
  deadlineAt: number;
};

/** Notes of a step how it stands. */
export async function noteOpen(
  { deps, run }: Walk,
  frame: Frame,
  { path, id, type, attempts, startedAt }: Omit<Attempt, "planned" | "deadlineAt">,
  more: Pick<OpenStepRecord, "status"> & Partial<OpenStepRecord>,
): Promise<void> {
  const { tenantId, _id: runId } = run;
  const { child, items, list, floor } = frame.open.get(path) ?? {};
  const about = { _id: `${runId}:${path}`, tenantId, runId, scope: frame.scope, path, id, type, attempts, startedAt };
  const step = { ...about, ...defined({ child, items, list, floor }), ...more };
  await deps.store.workflowRuns.noteOpen(step);
  frame.open.set(path, step);
}
