import { z } from "zod";
import { agent } from "./steps/agent.ts";
import { aiCompletion } from "./steps/ai-completion.ts";
import { composite } from "./steps/composite.ts";
import { type Condition, makeCondition } from "./steps/condition.ts";
import { type ForEach, makeForEach } from "./steps/for-each.ts";
import { humanApproval } from "./steps/human-approval.ts";
import { makeParallel, type Parallel } from "./steps/parallel.ts";
import { ragQuery } from "./steps/rag-query.ts";
import { set } from "./steps/set.ts";
import type { StepKind, StepPlace } from "./steps/step.ts";
import { wait } from "./steps/wait.ts";
import { webhook } from "./steps/webhook.ts";
import { workflow } from "./steps/workflow.ts";

/** Steps of a workflow, nested ones included, and how deep they nest. */
const MAX_STEPS = 200;
const MAX_DEPTH = 8;

/** The types of steps whose schemas hold no other steps, by their name, in the order of the documentation. */
const plainSteps = {
  ai_completion: aiCompletion,
  rag_query: ragQuery,
  human_approval: humanApproval,
  webhook,
  agent,
  composite,
  workflow,
  wait,
  set,
};
type PlainStep = z.output<(typeof plainSteps)[keyof typeof plainSteps]["schema"]>;
interface ConditionStep extends Condition<Step> {}
interface ForEachStep extends ForEach<Step> {}
interface ParallelStep extends Parallel<Step> {}
export type Step = PlainStep | ConditionStep | ForEachStep | ParallelStep;
type StepType = Step["type"];

const nested: z.ZodType<Step[]> = z.lazy(() => z.array(stepSchema));

/** All types of steps. */
export const steps = {
  ...plainSteps,
  condition: makeCondition(nested),
  for_each: makeForEach(nested),
  parallel: makeParallel(nested),
};
export const stepTypes = Object.keys(steps) as [StepType, ...StepType[]]; // the names of the object above

/** The value of a step's type, which a schema has checked. Its functions take steps of this type alone. */
export const kindOf = ({ type }: { type: string }): StepKind<Step> => steps[type as StepType];

const kinds: StepKind<Step>[] = Object.values(steps);
const stepSchema: z.ZodType<Step> = z.discriminatedUnion(
  "type",
  kinds.map(({ schema }) => schema) as unknown as [z.ZodType<Step> & z.core.$ZodTypeDiscriminable], // each has a literal `type`
);

/** What the documentation shows of a step; the fields of each type are checked after its nesting is known to be bounded. */
const anyStep = z.looseObject({ type: z.enum(stepTypes) });
type AnyStep = z.output<typeof anyStep>;

export const stepsSchema = z
  .array(anyStep)
  .min(1)
  .max(MAX_STEPS)
  .superRefine((list, context) => {
    const problem = findNestingProblem(list);
    if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
  })
  .pipe(z.array(stepSchema) as z.ZodType<Step[], AnyStep[]>) // the same values, whose fields are looked at now
  .describe(
    `Steps in order. ${Object.entries(steps)
      .map(([type, { summary }]) => `\`${type}\`: ${summary}.`)
      .join(
        " ",
      )} Each may have an \`id\`, \`retry: { attempts, backoffMs }\`, \`timeoutMs\` and \`onError: { goto | default }\`.`,
  );

const nestingFields = [...new Set(kinds.flatMap(({ nests = [] }) => nests))];

/** Steps of steps, looked at without recursion: a body may nest as deep as it likes. */
function findNestingProblem(list: readonly unknown[]): string | undefined {
  let level: unknown[] = [...list];
  let count = 0;
  for (let depth = 1; level.length > 0; depth += 1) {
    count += level.length;
    if (depth > MAX_DEPTH) return `Steps nest deeper than ${MAX_DEPTH}.`;
    if (count > MAX_STEPS) return `There are more than ${MAX_STEPS} steps.`;
    const next: unknown[] = [];
    for (const step of level)
      for (const field of nestingFields)
        for (const { list } of listsIn(step, field)) for (const one of list) next.push(one);
    level = next;
  }
  return undefined;
}

/** The lists of steps in a field: one, by the field's name, or those of an object, as `branches/legal`. */
function listsIn(step: unknown, field: string): { name: string; list: unknown[] }[] {
  const value: unknown = Reflect.get(Object(step), field);
  if (Array.isArray(value)) return [{ name: field, list: value }];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, list]) =>
    Array.isArray(list) ? [{ name: `${field}/${key}`, list }] : [],
  );
}

/** A step with its place, and the planned steps within it by the field that holds them. */
export type PlannedStep = StepPlace & { step: Step; branches: Readonly<Record<string, readonly PlannedStep[]>> };

/** The steps of a definition, with names for those without: `step_N`, N counting all steps in the order of the document. */
export function planSteps(steps: readonly Step[]): PlannedStep[] {
  let count = 0;
  const plan = (list: readonly Step[], path: string, field: string): PlannedStep[] =>
    list.map((step, index) => {
      count += 1;
      const place = { id: step.id ?? `step_${count}`, path: `${path}${index}`, field: `${field}[${index}]` };
      const branches: Record<string, PlannedStep[]> = {};
      for (const nesting of kindOf(step).nests ?? []) {
        for (const { name, list: inner } of listsIn(step, nesting)) {
          const steps = inner as Step[]; // the schema of the step's type has read them
          branches[name] = plan(steps, `${place.path}/${name}/`, `${place.field}.${name.replace("/", ".")}`);
        }
      }
      return { step, ...place, branches };
    });
  return plan(steps, "", "steps");
}

/** All steps of a plan, those of every branch. */
export const countSteps = (planned: readonly PlannedStep[]): number => [...eachStep(planned)].length;

/** Every step, each before those within it. */
export function* eachStep(planned: readonly PlannedStep[]): Generator<PlannedStep> {
  for (const one of planned) {
    yield one;
    for (const inner of Object.values(one.branches)) yield* eachStep(inner);
  }
}
