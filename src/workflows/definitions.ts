import {
  checkChatModel,
  checkDefinitionSize,
  type Definitions,
  makeDefinitions,
  shortDescription,
  toVersionView,
} from "../definitions/definitions.ts";
import { checkToolSchema } from "../definitions/published-tools.ts";
import { defined } from "../lib/defined.ts";
import { invalidRequest } from "../lib/errors.ts";
import type { WorkflowRecord, WorkflowSummaryRecord } from "../store/workflow-store.ts";
import type { WorkflowsDeps } from "./deps.ts";
import type { StepTexts } from "./evaluate.ts";
import type { WorkflowBody, WorkflowReplacement, WorkflowSummary, WorkflowView } from "./schemas.ts";
import { eachStep, kindOf, type PlannedStep, planSteps } from "./steps.ts";

/** The definitions of workflows. */
export function makeWorkflowDefinitions(
  deps: WorkflowsDeps,
): Definitions<WorkflowReplacement, WorkflowView, WorkflowSummary> {
  return makeDefinitions({
    what: "workflow",
    store: deps.store.workflows,
    versions: deps.store.definitionVersions,
    toolNames: deps.toolNames,
    checkQuota: (tenantId) => deps.quotas.check(tenantId, "workflows"),
    publishedAs: ({ tool }) => tool?.name,
    async toChange(tenantId, body: WorkflowBody) {
      checkDefinitionSize(body, "steps"); // first: the other checks take longer, the larger it is
      await checkDefinition(deps, tenantId, body);
      const { name, description, steps, inputSchema, publish } = body;
      if (publish) checkToolSchema(inputSchema);
      return {
        name: name.toWellFormed(),
        definition: JSON.stringify(body).toWellFormed(), // the whole as text; the rest is what lists show
        ...defined({ description: description?.toWellFormed() }),
        ...(publish && { tool: { ...publish, ...(inputSchema && { inputSchema: JSON.stringify(inputSchema) }) } }),
        stepCount: eachStep(planSteps(steps)).reduce((count) => count + 1, 0),
      };
    },
    toRestored: (old, current) => ({ body: toDefinition(old), earlier: current }),
    toView: toWorkflowView,
    toSummary: toWorkflowSummary,
  });
}

/** The definition that was kept: checked when it was written. */
export const toDefinition = ({ definition }: { definition: string }): WorkflowBody => JSON.parse(definition);

function toWorkflowSummary(workflow: WorkflowSummaryRecord): WorkflowSummary {
  const { _id: workflowId, name, description, stepCount } = workflow;
  const optional = defined({ description: shortDescription(description) });
  return { workflowId, name, ...optional, stepCount, ...toVersionView(workflow) };
}

const toWorkflowView = (workflow: WorkflowRecord): WorkflowView => ({
  workflowId: workflow._id,
  ...toDefinition(workflow),
  ...toVersionView(workflow),
});

/**
 * What the schema cannot say of a definition: ids that are unique, expressions that parse, names of steps that come before,
 * models that exist, addresses that may be called, an input schema that is one.
 * @throws AppError `invalid_request`, `unknown_model`, `source_refused`; `param` names the field. As the evaluator.
 */
async function checkDefinition(deps: WorkflowsDeps, tenantId: string, body: WorkflowBody): Promise<void> {
  const { steps, inputSchema } = body;
  const plan = planSteps(steps);
  const planned = [...eachStep(plan)];
  const seen = new Set<string>();
  for (const { id, field } of planned) {
    if (seen.has(id)) {
      throw invalidRequest(`${field}.id`, `There is a step ${id} before this one: give each an id of its own.`);
    }
    seen.add(id);
  }
  checkJumps(plan);
  const texts = toStepTexts(plan);
  for (const { field, step } of planned) {
    const kind = kindOf(step);
    await kind.check?.(step, { deps, tenantId, field });
    const model = kind.model?.(step);
    if (model !== undefined) await checkChatModel(deps.gateway, { tenantId, model, param: `${field}.model` });
  }
  await deps.evaluator.checkDefinition({ tenantId }, { steps: texts, ...(inputSchema ? { inputSchema } : {}) });
}

/** What may be named where: the steps before, the branches of `parallel` apart, and within `for_each` the item. */
function toStepTexts(plan: readonly PlannedStep[]): StepTexts[] {
  const texts: StepTexts[] = [];
  const walk = (list: readonly PlannedStep[], known: Set<string>, names: readonly string[]): void => {
    for (const { id, field, step, branches } of list) {
      const kind = kindOf(step);
      texts.push({ field, fields: kind.fields(step), known: [...known], names });
      const within = [...names, ...(kind.names?.(step) ?? [])];
      const isApart = step.type === "parallel" || step.type === "for_each";
      const copies = Object.values(branches).map((inner) => {
        const own = isApart ? new Set(known) : known;
        walk(inner, own, [...new Set(within)]);
        return own;
      });
      if (step.type === "parallel") for (const inner of copies.flatMap((own) => [...own])) known.add(inner);
      known.add(id);
    }
  };
  walk(plan, new Set(), []);
  return texts;
}

/** @throws AppError `invalid_request` for an error that leads to no later step of its list. */
function checkJumps(list: readonly PlannedStep[]): void {
  for (const [at, { step, field, branches }] of list.entries()) {
    const { onError } = step;
    const target = typeof onError === "object" && "goto" in onError ? onError.goto : undefined;
    if (target !== undefined && !list.slice(at + 1).some(({ id }) => id === target))
      throw invalidRequest(`${field}.onError.goto`, `${target} is no later step of the same list.`);
    for (const inner of Object.values(branches)) checkJumps(inner);
  }
}
