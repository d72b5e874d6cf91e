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
import type { WorkflowBody, WorkflowReplacement, WorkflowSummary, WorkflowView } from "./schemas.ts";
import { eachStep, kindOf, planSteps } from "./steps.ts";

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
    async toChange({ tenantId }, body: WorkflowBody) {
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
  const known = new Set<string>();
  const planned = [...eachStep(planSteps(steps))];
  const texts = planned.map(({ id, field, step }) => {
    const kind = kindOf(step);
    if (known.has(id)) {
      throw invalidRequest(`${field}.id`, `There is a step ${id} before this one: give each an id of its own.`);
    }
    known.add(id);
    return { id, field, fields: kind.fields(step) };
  });
  for (const { field, step } of planned) {
    const kind = kindOf(step);
    await kind.check?.(step, { deps, tenantId, field });
    const model = kind.model?.(step);
    if (model !== undefined) await checkChatModel(deps.gateway, { tenantId, model, param: `${field}.model` });
  }
  await deps.evaluator.checkDefinition({ tenantId }, { steps: texts, ...(inputSchema ? { inputSchema } : {}) });
}
