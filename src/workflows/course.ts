import type { WorkContext } from "../jobs/work.ts";
import { defined } from "../lib/defined.ts";
import type { WorkflowRunRecord } from "../store/workflow-run-store.ts";
import type { OpenStepRecord } from "../store/workflow-step-store.ts";
import type { WorkflowsDeps } from "./deps.ts";
import type { Frame, RunTexts } from "./frame.ts";
import type { Turn } from "./pauses.ts";
import type { JsonValue } from "./scope-texts.ts";
import type { StepResult, StepWork } from "./steps/step.ts";
import type { PlannedStep, Step } from "./steps.ts";

/** A run under way in this process. */
export type Walk = {
  deps: WorkflowsDeps;
  run: WorkflowRunRecord;
  context: WorkContext;
  turn: Turn;
  texts: RunTexts;
  root: Frame;
  /** Its steps, and how many these are with those within them. */
  planned: readonly PlannedStep[];
  allSteps: number;
  /** How far followers were told that the run is. */
  progress: { stage: string; done: number; total: number };
  /** Walks through a list of steps, those that have a result included. */
  walkSteps(on: Walk, course: Course, list: readonly PlannedStep[]): Promise<void>;
  /** Does what calls others in a dry run. Absent of a run that calls them. */
  dry?(work: StepWork<Step>): Promise<StepResult>;
};

/** What the latest step with an output gave: `previous` to the next one, and JSON of it, undefined before the first. */
export type Line = { previous: JsonValue; last: string | undefined };

/**
 * One flow of steps, one after the other. `deadlineAt`: when the steps around it are out of time, in ms since 1970; `width`: how many
 * items may be under way at once within it.
 */
export type Course = {
  frame: Frame;
  line: Line;
  signal: AbortSignal;
  deadlineAt: number;
  width: number;
  /** Whether others of the run may be at work beside it. */
  isNested: boolean;
};

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
  const { child, items, list, floor, spent } = frame.open.get(path) ?? {};
  const about = { _id: `${runId}:${path}`, tenantId, runId, scope: frame.scope, path, id, type, attempts, startedAt };
  const step = { ...about, ...defined({ child, items, list, floor, spent }), ...more };
  await deps.store.workflowRuns.noteOpen(step);
  frame.open.set(path, step);
}
