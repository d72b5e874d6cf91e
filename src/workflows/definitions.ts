import { defined } from "../defined.ts";
import {
  checkChatModel,
  checkDefinitionSize,
  firstVersion,
  keepDefinitions,
  shortDescription,
  toVersionView,
} from "../definitions.ts";
import { AppError } from "../errors.ts";
import { newId } from "../ids.ts";
import { mapPage, type Page, type PageQuery } from "../store/page.ts";
import type { WorkflowRecord, WorkflowSummaryRecord } from "../store/workflow-store.ts";
import type { Caller } from "../tenancy/roles.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { eachStep, planSteps } from "./plan.ts";
import type { WorkflowBody, WorkflowReplacement, WorkflowSummary, WorkflowView } from "./schemas.ts";
import { kindOf } from "./steps.ts";

export type WorkflowDefinitions = {
  /** @throws AppError `invalid_request`, `unknown_model`, `source_refused`, with the step's field; `quota_exceeded`. */
  create(caller: Caller, body: WorkflowBody): Promise<WorkflowView>;
  /** The newest first. */
  list(tenantId: string, page: PageQuery): Promise<Page<WorkflowSummary>>;
  /** @throws AppError `not_found`. */
  get(tenantId: string, workflowId: string): Promise<WorkflowView>;
  /** The next version. @throws AppError `not_found`, `insufficient_role`, `wrong_state` (another version), as `create`. */
  replace(caller: Caller, workflowId: string, body: WorkflowReplacement): Promise<WorkflowView>;
  /** Its runs continue, and stay. @throws AppError `not_found`, `insufficient_role`. */
  remove(caller: Caller, workflowId: string): Promise<void>;
};

/** The definitions of workflows. */
export function makeWorkflowDefinitions(deps: WorkflowsDeps): WorkflowDefinitions {
  const { workflows } = deps.store;
  const kept = keepDefinitions("workflow", workflows);
  const check = (tenantId: string, body: WorkflowBody) => {
    checkDefinitionSize(body, "steps"); // first: the other checks take the longer, the larger it is
    return checkDefinition(deps, tenantId, body);
  };
  return {
    async create(caller, body) {
      await check(caller.tenantId, body);
      await deps.quotas.check(caller.tenantId, "workflows");
      const workflow = { _id: newId("workflow"), ...toFields(body), ...firstVersion(caller) };
      await workflows.insert(workflow);
      return toWorkflowView(workflow);
    },
    list: async (tenantId, page) => mapPage(await workflows.list(tenantId, page), toWorkflowSummary),
    get: async (tenantId, workflowId) => toWorkflowView(await kept.find(tenantId, workflowId)),
    async replace(caller, workflowId, { version: expected, ...body }) {
      const { tenantId } = await kept.findToChange(caller, workflowId);
      await check(tenantId, body);
      return toWorkflowView(await kept.replace(tenantId, workflowId, { expected, change: toFields(body) }));
    },
    remove: kept.remove,
  };
}

/** What the store keeps of a definition: the whole as text, and what lists show of it. */
function toFields(body: WorkflowBody) {
  const { name, description, steps } = body;
  return {
    name: name.toWellFormed(),
    definition: JSON.stringify(body).toWellFormed(),
    ...defined({ description: description?.toWellFormed() }),
    stepCount: eachStep(planSteps(steps)).reduce((count) => count + 1, 0),
  };
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
  const texts = [...eachStep(planSteps(steps))].map(({ id, field, step }) => {
    const kind = kindOf(step);
    if (known.has(id)) {
      const message = `There is a step ${id} before this one: give each an id of its own.`;
      throw new AppError("invalid_request", message, { param: `${field}.id` });
    }
    known.add(id);
    const model = kind.model?.(step);
    if (model !== undefined) checkChatModel(deps.gateway, model, `${field}.model`);
    kind.check?.(step, { deps, field });
    return { id, field, fields: kind.fields(step) };
  });
  await deps.evaluator.checkDefinition({ tenantId }, { steps: texts, ...(inputSchema ? { inputSchema } : {}) });
}
