import type { WorkContext } from "../jobs/work.ts";
import type { WorkflowRunRecord } from "../store/workflow-run-store.ts";
import type { WorkflowsDeps } from "./deps.ts";
import type { Frame, RunTexts } from "./frame.ts";
import type { Turn } from "./pauses.ts";
import type { JsonValue } from "./scope-texts.ts";
import type { PlannedStep } from "./steps.ts";

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
  /** Collects what a dry run would call. Absent of a run that calls it. */
  dry?: { calls: object[] };
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
