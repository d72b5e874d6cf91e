import { checkChatModel } from "../definitions/definitions.ts";
import { AppError, invalidRequest } from "../lib/errors.ts";
import type { WorkflowsDeps } from "./deps.ts";
import type { StepTexts } from "./evaluate.ts";
import type { WorkflowBody } from "./schemas.ts";
import { eachStep, kindOf, type PlannedStep, planSteps, type Step } from "./steps.ts";

/** Workflows that run inside of each other at most. */
const MAX_DEPTH = 5;

/** A definition to check; `workflowId`: of the workflow that it is to replace. */
type Checked = { tenantId: string; body: WorkflowBody; workflowId?: string | undefined };

/**
 * What the schema cannot say of a definition: ids that are unique, errors that lead on, expressions that parse, names of steps that
 * come before, models, agents and workflows that exist, workflows that do not run themselves, addresses that may be called, an
 * input schema that is one. One problem after the other, each with the `param` of its field: `invalid_request`, `unknown_model`,
 * `source_refused`. @throws what is no problem of the definition, as the evaluator.
 */
export async function* problemsOf(deps: WorkflowsDeps, checked: Checked): AsyncGenerator<AppError> {
  const { tenantId, body } = checked;
  const plan = planSteps(body.steps);
  yield* repeatedIds(plan);
  yield* wrongJumps(plan);
  for (const { field, step } of eachStep(plan)) {
    const kind = kindOf(step);
    const model = kind.model?.(step);
    yield* problemIn(async () => {
      await kind.check?.(step, { deps, tenantId, field });
      if (model !== undefined) await checkChatModel(deps.gateway, { tenantId, model, param: `${field}.model` });
      if (step.type === "workflow") await checkCalls(deps, checked, { workflowId: step.workflowId, field });
    });
  }
  yield* wrongExpressions(deps, checked, toStepTexts(plan));
}

/** The problem that a check throws. */
async function* problemIn(check: () => Promise<unknown>): AsyncGenerator<AppError> {
  try {
    await check();
  } catch (error) {
    if (!(error instanceof AppError) || error.param === undefined) throw error;
    yield error;
  }
}

function* repeatedIds(plan: readonly PlannedStep[]): Generator<AppError> {
  const seen = new Set<string>();
  for (const { id, field } of eachStep(plan)) {
    if (seen.has(id))
      yield invalidRequest(`${field}.id`, `There is a step ${id} before this one: give each an id of its own.`);
    seen.add(id);
  }
}

/** Errors that lead to no later step of their list. */
function* wrongJumps(list: readonly PlannedStep[]): Generator<AppError> {
  for (const [at, { step, field, branches }] of list.entries()) {
    const { onError } = step;
    const target = typeof onError === "object" && "goto" in onError ? onError.goto : undefined;
    if (target !== undefined && !list.slice(at + 1).some(({ id }) => id === target))
      yield invalidRequest(`${field}.onError.goto`, `${target} is no later step of the same list.`);
    for (const inner of Object.values(branches)) yield* wrongJumps(inner);
  }
}

/** @throws AppError `invalid_request` when a workflow that a step runs leads back to this one, or too deep. */
async function checkCalls(
  { store }: WorkflowsDeps,
  { tenantId, workflowId: own }: Checked,
  { workflowId, field }: { workflowId: string; field: string },
): Promise<void> {
  const param = `${field}.workflowId`;
  let level = [workflowId];
  const seen = new Set<string>();
  for (let depth = 2; level.length > 0; depth += 1) {
    if (level.some((id) => id === own)) throw invalidRequest(param, "That workflow runs this one: it would never end.");
    if (depth > MAX_DEPTH)
      throw invalidRequest(param, `Workflows would run inside of each other deeper than ${MAX_DEPTH}.`);
    const next: string[] = [];
    for (const id of level) {
      const found = seen.has(id) ? null : await store.workflows.get(tenantId, id);
      seen.add(id);
      const steps: Step[] = found === null ? [] : JSON.parse(found.definition).steps; // checked when it was written
      for (const { step } of eachStep(planSteps(steps))) if (step.type === "workflow") next.push(step.workflowId);
    }
    level = [...new Set(next)];
  }
}

/** All at once, as a rule; step by step when there is a problem. */
async function* wrongExpressions(
  { evaluator }: WorkflowsDeps,
  { tenantId, body: { inputSchema } }: Checked,
  texts: readonly StepTexts[],
): AsyncGenerator<AppError> {
  const schema = inputSchema ? { inputSchema } : {};
  const check = (steps: StepTexts[]) => problemIn(() => evaluator.checkDefinition({ tenantId }, { steps, ...schema }));
  for await (const first of check([...texts])) {
    let count = 0;
    for (const one of texts) {
      for await (const problem of problemIn(() => evaluator.checkDefinition({ tenantId }, { steps: [one] }))) {
        count += 1;
        yield problem;
      }
    }
    if (count === 0 || first.param?.startsWith("inputSchema")) yield first;
  }
}

/** What may be named where: the steps before, the branches of `parallel` apart, and within `for_each` the item. */
function toStepTexts(plan: readonly PlannedStep[]): StepTexts[] {
  const texts: StepTexts[] = [];
  const walk = (list: readonly PlannedStep[], known: Set<string>, names: readonly string[]): void => {
    for (const { id, field, step, branches } of list) {
      const kind = kindOf(step);
      texts.push({ field, fields: kind.fields(step), known: [...known], names });
      const within = [...new Set([...names, ...(kind.names?.(step) ?? [])])];
      const isApart = step.type === "parallel" || step.type === "for_each";
      const copies = Object.values(branches).map((inner) => {
        const own = isApart ? new Set(known) : known;
        walk(inner, own, within);
        return own;
      });
      if (step.type === "parallel") for (const inner of copies.flatMap((own) => [...own])) known.add(inner);
      known.add(id);
    }
  };
  walk(plan, new Set(), []);
  return texts;
}
