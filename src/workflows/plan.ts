import type { StepPlace } from "./steps/step.ts";
import { branchesOf, type Step } from "./steps.ts";

/** A step with its place, and the planned steps within it by the field that holds them. */
export type PlannedStep = StepPlace & { step: Step; branches: Readonly<Record<string, readonly PlannedStep[]>> };

/** The steps of a definition, with names for those without: `step_N`, N counting all steps in the order of the document. */
export function planSteps(steps: readonly Step[]): PlannedStep[] {
  let count = 0;
  const plan = (list: readonly Step[], path: string, field: string): PlannedStep[] =>
    list.map((step, index) => {
      count += 1;
      const place = { id: step.id ?? `step_${count}`, path: `${path}${index}`, field: `${field}[${index}]` };
      const branches = branchesOf(step).map(([name, inner]) => {
        return [name, plan(inner, `${place.path}/${name}/`, `${place.field}.${name}`)] as const;
      });
      return { step, ...place, branches: Object.fromEntries(branches) };
    });
  return plan(steps, "", "steps");
}

/** Every step, each before those within it. */
export function* eachStep(planned: readonly PlannedStep[]): Generator<PlannedStep> {
  for (const one of planned) {
    yield one;
    for (const inner of Object.values(one.branches)) yield* eachStep(inner);
  }
}
