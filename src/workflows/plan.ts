import type { Step } from "./step-schemas.ts";

/** A step with what it is called, and where it stands. */
export type PlannedStep = {
  step: Step;
  /** What expressions call it. */
  id: string;
  /** As `2/then/0`: stable for a version, and part of the ids of what the step does outside. */
  path: string;
  /** As `steps[2].then[0]`, for errors. */
  field: string;
  /** Of a condition: the steps of its branches. */
  whenTrue: PlannedStep[];
  whenFalse: PlannedStep[];
};

/** The steps of a definition, with names for those without: `step_N`, N counting all steps in the order of the document. */
export function planSteps(steps: readonly Step[]): PlannedStep[] {
  let count = 0;
  const plan = (list: readonly Step[], path: string, field: string): PlannedStep[] =>
    list.map((step, index) => {
      count += 1;
      const id = step.id ?? `step_${count}`;
      const here = { path: `${path}${index}`, field: `${field}[${index}]` };
      if (step.type !== "condition") return { step, id, ...here, whenTrue: [], whenFalse: [] };
      return {
        step,
        id,
        ...here,
        whenTrue: plan(step.then, `${here.path}/then/`, `${here.field}.then`),
        whenFalse: plan(step.else, `${here.path}/else/`, `${here.field}.else`),
      };
    });
  return plan(steps, "", "steps");
}

/** Every step, each before those within it. */
export function* eachStep(planned: readonly PlannedStep[]): Generator<PlannedStep> {
  for (const one of planned) {
    yield one;
    yield* eachStep(one.whenTrue);
    yield* eachStep(one.whenFalse);
  }
}
