import type { WorkflowStepRecord } from "../store/workflow-step-store.ts";
import { advance } from "./advance.ts";
import type { Course, Walk } from "./course.ts";
import { RunEnds, StepFailed } from "./pauses.ts";
import { toJsonValue } from "./scope-texts.ts";
import { kindOf, type PlannedStep } from "./steps.ts";

/** Walks through a list of steps, those that have a result included. @throws StepFailed; RunEnds; what `advance` throws. */
export async function walkSteps(on: Walk, course: Course, list: readonly PlannedStep[]): Promise<void> {
  for (let at = 0; at < list.length; at += 1) {
    const planned = list[at];
    if (planned === undefined) return;
    const result = course.frame.resultOf(course.frame.pathOf(planned)) ?? (await advance(on, course, planned));
    const target = jumpOf(planned, result);
    if (target === undefined) await follow(on, course, planned, result);
    else at = list.findIndex(({ id }) => id === target) - 1;
  }
}

/** Where the run goes on after a step that failed; undefined: with the next one. @throws StepFailed when it does not. */
function jumpOf({ step }: PlannedStep, { status, error, output }: WorkflowStepRecord): string | undefined {
  if (status !== "failed") return undefined;
  const { onError } = step;
  if (typeof onError === "object" && "goto" in onError) return onError.goto;
  if (typeof onError === "object" && output !== undefined) return undefined;
  throw new StepFailed(error ?? { type: "server_error", code: "internal", message: "The step failed." });
}

/** Does what the result of a step means. */
async function follow(on: Walk, course: Course, planned: PlannedStep, result: WorkflowStepRecord): Promise<void> {
  const { output = "null", ends } = result;
  if (ends) throw new RunEnds(ends);
  const { effect, isSilent } = kindOf(planned.step);
  if (!isSilent) {
    course.line.previous = toJsonValue(output);
    course.line.last = output;
  }
  if (!effect) return; // the outputs of other types may be long
  const { end, branch = "" } = effect(JSON.parse(output));
  if (end) throw new RunEnds(end);
  await walkSteps(on, course, planned.branches[branch] ?? []);
}
