import {
  checkDefinitionSize,
  type Definitions,
  makeDefinitions,
  shortDescription,
  toVersionView,
} from "../definitions/definitions.ts";
import { checkToolSchema } from "../definitions/published-tools.ts";
import { defined } from "../lib/defined.ts";
import type { AppError } from "../lib/errors.ts";
import type { WorkflowRecord, WorkflowSummaryRecord } from "../store/workflow-store.ts";
import { checkDefinition } from "./check-definition.ts";
import type { WorkflowsDeps } from "./deps.ts";
import type { WorkflowBody, WorkflowReplacement, WorkflowSummary, WorkflowView } from "./schemas.ts";
import { eachStep, planSteps } from "./steps.ts";

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
    async toChange({ tenantId }, body: WorkflowBody, earlier) {
      checkDefinitionSize(body, "steps"); // first: the other checks take longer, the larger it is
      const workflowId = earlier && "_id" in earlier ? String(earlier._id) : undefined; // of one that is replaced
      const { name, description, steps, inputSchema, publish } = body;
      if (publish) checkToolSchema(inputSchema);
      await checkDefinition(deps, { tenantId, body, workflowId }, throwIt);
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

const throwIt = (problem: AppError): never => {
  throw problem;
};

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
