import { checkChatModel } from "../definitions/definitions.ts";
import { AppError, invalidRequest } from "../lib/errors.ts";
import type { WorkflowsDeps } from "./deps.ts";
import type { StepTexts } from "./evaluate.ts";
import { toGivenInput } from "./given-inputs.ts";
import { type Schemas, schemaOf } from "./known-schemas.ts";
import type { WorkflowBody } from "./schemas.ts";
import { inField } from "./step-texts.ts";
import { eachStep, kindOf, type PlannedStep, planSteps, type Step } from "./steps.ts";

/** Workflows that run inside of each other at most. */
const MAX_DEPTH = 5;

/** A definition to check; `workflowId`: of the workflow that it is to replace. */
type Checked = { tenantId: string; body: WorkflowBody; workflowId?: string | undefined };

/** Told of each problem; what it throws ends the check. */
type Report = (problem: AppError) => void;

/**
 * Reports what the schema cannot say of a definition: ids that are not unique, errors that do not lead on, models, agents and
 * workflows that do not exist, workflows that run themselves, addresses that may not be called, expressions that do not parse, or
 * name steps that do not come before, an input schema that is none. Each problem has the `param` of its field: `invalid_request`,
 * `unknown_model`, `source_refused`. @throws what is no problem of the definition, as the evaluator; what `report` throws.
 */
export async function checkDefinition(deps: WorkflowsDeps, checked: Checked, report: Report): Promise<void> {
  const { tenantId, body } = checked;
  const plan = planSteps(body.steps);
  const texts: StepTexts[] = [];
  const schemas: Schemas = body.inputSchema ? { input: body.inputSchema } : {};
  lookThrough(plan, { known: new Set(), names: [], schemas, ids: new Set(), texts, report });
  for (const { field, step } of eachStep(plan)) {
    const kind = kindOf(step);
    const model = kind.model?.(step);
    try {
      await kind.check?.(step, { deps, tenantId, field });
      if (model !== undefined) await checkChatModel(deps.gateway, { tenantId, model, param: `${field}.model` });
      if (step.type === "workflow") {
        await checkCalls(deps, checked, { workflowId: step.workflowId, field });
        const ofItems = texts.find((one) => one.field === field)?.schemas;
        await checkGiven(deps, checked, { step, field, schemas: { ...schemas, ...ofItems } });
      }
    } catch (error) {
      report(asProblem(error));
    }
  }
  await checkExpressions(deps, checked, texts, report);
}

/** @throws what is no problem of a definition. */
function asProblem(error: unknown): AppError {
  if (error instanceof AppError && error.param !== undefined) return error;
  throw error;
}

type Looking = {
  /** The steps that may be named here, and what is seen besides, as the item of a list. */
  known: Set<string>;
  names: readonly string[];
  /** What is known of these, and of the input. */
  schemas: Schemas;
  /** All ids so far. */
  ids: Set<string>;
  texts: StepTexts[];
  report: Report;
};

/**
 * Collects the expressions of steps, and what they may name: the steps before, the branches of `parallel` apart, and within
 * `for_each` the item. Reports ids that are there already, and errors that lead to no later step of their list.
 */
function lookThrough(list: readonly PlannedStep[], at: Looking): void {
  const { known, names, schemas, ids, texts, report } = at;
  for (const [index, { id, field, step, branches }] of list.entries()) {
    if (ids.has(id))
      report(invalidRequest(`${field}.id`, `There is a step ${id} before this one: give each an id of its own.`));
    ids.add(id);
    const target = typeof step.onError === "object" && "goto" in step.onError ? step.onError.goto : undefined;
    if (target !== undefined && !list.slice(index + 1).some((later) => later.id === target))
      report(invalidRequest(`${field}.onError.goto`, `${target} is no later step of the same list.`));
    const kind = kindOf(step);
    const { input: _given, ...ofItems } = schemas;
    texts.push({ field, fields: kind.fields(step), known: [...known], names, schemas: ofItems });
    const within = [...names, ...(kind.names?.(step) ?? [])];
    const own = new Set(kind.names?.(step));
    const outer = Object.entries(schemas).filter(([name]) => !own.has(name));
    const seen = { ...Object.fromEntries(outer), ...kind.schemas?.(step, (text) => schemaOf(text, schemas)) };
    const isApart = step.type === "parallel" || step.type === "for_each";
    const before = new Set(known);
    for (const inner of Object.values(branches)) {
      const ownKnown = isApart ? new Set(before) : known;
      lookThrough(inner, { ...at, known: ownKnown, names: within, schemas: seen });
      if (step.type === "parallel") for (const one of ownKnown) known.add(one);
    }
    known.add(id);
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

/** @throws AppError `invalid_request` for an input that the workflow which a step runs does not take. */
async function checkGiven(
  { store, evaluator }: WorkflowsDeps,
  { tenantId }: Checked,
  { step, field, schemas }: { step: Extract<Step, { type: "workflow" }>; field: string; schemas: Schemas },
): Promise<void> {
  const called = await store.workflows.get(tenantId, step.workflowId);
  const { inputSchema }: Pick<WorkflowBody, "inputSchema"> = JSON.parse(called?.definition ?? "{}"); // checked when it was written
  if (inputSchema === undefined) return;
  const given = inField(`${field}.input`, () => toGivenInput(step.input, schemas));
  await evaluator.checkGiven({ tenantId }, { kind: "check-given", inputSchema, given, field });
}

/** All at once, as a rule; step by step when there is a problem. */
async function checkExpressions(
  { evaluator }: WorkflowsDeps,
  { tenantId, body: { inputSchema } }: Checked,
  steps: readonly StepTexts[],
  report: Report,
): Promise<void> {
  const schema = inputSchema ? { inputSchema } : {};
  let first: AppError;
  try {
    return await evaluator.checkDefinition({ tenantId }, { steps: [...steps], ...schema });
  } catch (error) {
    first = asProblem(error);
  }
  const isOfSchema = first.param?.startsWith("inputSchema") ?? false;
  if (isOfSchema) report(first);
  const typed = isOfSchema ? {} : schema;
  let isTold = isOfSchema;
  for (const one of steps) {
    try {
      await evaluator.checkDefinition({ tenantId }, { steps: [one], ...typed });
    } catch (error) {
      report(asProblem(error));
      isTold = true;
    }
  }
  if (!isTold) report(first);
}
