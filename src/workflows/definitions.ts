import { checkDefinitionSize, shortDescription } from "../definition-limits.ts";
import { AppError, notFound } from "../errors.ts";
import { newId } from "../ids.ts";
import { mapPage, type Page, type PageQuery } from "../store/page.ts";
import type { WorkflowRecord, WorkflowSummaryRecord } from "../store/workflow-store.ts";
import { type Caller, hasRole } from "../tenancy/roles.ts";
import { checkDefinition } from "./check-definition.ts";
import type { WorkflowsDeps } from "./deps.ts";
import { eachStep, planSteps } from "./plan.ts";
import type { WorkflowBody, WorkflowReplacement, WorkflowSummary, WorkflowView } from "./schemas.ts";

/** Changes of one workflow at once that a replacement without a version gives way to, and tries again. */
const REPLACE_TRIES = 5;

export type WorkflowDefinitions = {
  /** @throws AppError `invalid_request`, `unknown_model`, `source_refused`, with the step's field; `quota_exceeded`. */
  create(caller: Caller, body: WorkflowBody): Promise<WorkflowView>;
  /** The newest first. */
  list(tenantId: string, page: PageQuery): Promise<Page<WorkflowSummary>>;
  /** @throws AppError `not_found`. */
  get(tenantId: string, workflowId: string): Promise<WorkflowView>;
  /** The next version. @throws AppError `not_found`, `insufficient_role`, `wrong_state` (another version), as `create`. */
  replace(caller: Caller, workflowId: string, body: WorkflowReplacement): Promise<WorkflowView>;
  /** Its runs go on, and stay. @throws AppError `not_found`, `insufficient_role`. */
  remove(caller: Caller, workflowId: string): Promise<void>;
};

/** Workflows as they are defined. Members manage their own; admins those of others too. */
export function makeWorkflowDefinitions(deps: WorkflowsDeps): WorkflowDefinitions {
  const { workflows } = deps.store;
  const find = async (tenantId: string, workflowId: string) => {
    const workflow = await workflows.get(tenantId, workflowId);
    if (!workflow) throw notFound("workflow");
    return workflow;
  };
  const checkRights = async (caller: Caller, workflowId: string) => {
    const { createdBy } = await find(caller.tenantId, workflowId);
    if (createdBy === caller.subject || hasRole(caller.role, "admin")) return;
    throw new AppError("insufficient_role", "Only an admin changes the workflows of others.");
  };
  const check = (tenantId: string, body: WorkflowBody) => {
    checkDefinitionSize(body, "steps"); // first: the other checks take the longer, the larger it is
    return checkDefinition(deps, tenantId, body);
  };
  return {
    async create(caller, body) {
      await check(caller.tenantId, body);
      await deps.quotas.check(caller.tenantId, "workflows");
      const now = new Date();
      const workflow = {
        _id: newId("workflow"),
        tenantId: caller.tenantId,
        ...toFields(body),
        version: 1,
        createdBy: caller.subject,
        createdAt: now,
        updatedAt: now,
      };
      await workflows.insert(workflow);
      return toWorkflowView(workflow);
    },
    list: async (tenantId, page) => mapPage(await workflows.list(tenantId, page), toWorkflowSummary),
    get: async (tenantId, workflowId) => toWorkflowView(await find(tenantId, workflowId)),
    async replace(caller, workflowId, { version: expected, ...body }) {
      await checkRights(caller, workflowId);
      await check(caller.tenantId, body);
      const change = toFields(body);
      for (let tries = 0; tries < REPLACE_TRIES; tries += 1) {
        const { version } = await find(caller.tenantId, workflowId);
        if (expected !== undefined && expected !== version) {
          throw new AppError("wrong_state", `The workflow is at version ${version}.`, { details: { version } });
        }
        const replaced = await workflows.replace(caller.tenantId, workflowId, { version, change });
        if (replaced) return toWorkflowView(replaced);
      }
      throw new AppError("wrong_state", "The workflow is changed by others at the same time.");
    },
    async remove(caller, workflowId) {
      await checkRights(caller, workflowId);
      if (!(await workflows.remove(caller.tenantId, workflowId))) throw notFound("workflow");
    },
  };
}

/** What the store keeps of a definition: the whole as text, and what lists show of it. */
function toFields(body: WorkflowBody) {
  const { name, description, steps } = body;
  return {
    name: name.toWellFormed(),
    definition: JSON.stringify(body).toWellFormed(),
    ...(description === undefined ? {} : { description: description.toWellFormed() }),
    stepCount: eachStep(planSteps(steps)).reduce((count) => count + 1, 0),
  };
}

/** The definition that was kept: checked when it was written. */
export const toDefinition = ({ definition }: { definition: string }): WorkflowBody => JSON.parse(definition);

function toWorkflowSummary(workflow: WorkflowSummaryRecord): WorkflowSummary {
  const { _id: workflowId, name, description, stepCount, version, createdBy, createdAt, updatedAt } = workflow;
  return {
    workflowId,
    name,
    ...(description === undefined ? {} : { description: shortDescription(description) }),
    ...(stepCount === undefined ? {} : { stepCount }),
    version,
    createdBy,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

function toWorkflowView(workflow: WorkflowRecord): WorkflowView {
  const { _id: workflowId, version, createdBy, createdAt, updatedAt } = workflow;
  return {
    workflowId,
    ...toDefinition(workflow),
    version,
    createdBy,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}
