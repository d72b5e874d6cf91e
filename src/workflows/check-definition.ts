import { AppError } from "../errors.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { GuardedRequest } from "../net/guarded-request.ts";
import type { Evaluator } from "./evaluator.ts";
import { eachStep, planSteps } from "./plan.ts";
import type { WorkflowBody } from "./schemas.ts";
import { fieldsOf } from "./step-texts.ts";

export type CheckDeps = {
  gateway: Pick<Gateway, "findModel">;
  outside: Pick<GuardedRequest, "check">;
  evaluator: Pick<Evaluator, "checkDefinition">;
};

const invalid = (param: string, message: string) => new AppError("invalid_request", message, { param });

/**
 * What the schema cannot say of a definition: ids that are unique, expressions that parse, names of steps that come before,
 * models that there are, addresses that may be called, an input schema that is one.
 * @throws AppError `invalid_request`, `unknown_model`, `source_refused`; `param` names the field. As the evaluator.
 */
export async function checkDefinition(deps: CheckDeps, tenantId: string, body: WorkflowBody): Promise<void> {
  const { steps, inputSchema } = body;
  const known = new Set<string>();
  const planned = [...eachStep(planSteps(steps))];
  for (const { id, field, step } of planned) {
    if (known.has(id))
      throw invalid(`${field}.id`, `There is a step ${id} before this one: give each an id of its own.`);
    if (step.type === "ai_completion") checkModel(deps, step.model, `${field}.model`);
    if (step.type === "webhook" && !step.url.includes("{{")) deps.outside.check(step.url, `${field}.url`);
    known.add(id);
  }
  const texts = planned.map(({ id, field, step }) => ({ id, field, fields: fieldsOf(step) }));
  await deps.evaluator.checkDefinition({ tenantId }, { steps: texts, ...(inputSchema ? { inputSchema } : {}) });
}

function checkModel({ gateway }: CheckDeps, model: string, param: string): void {
  const type = model === "auto" ? "chat" : gateway.findModel(model)?.type;
  if (type !== undefined && type !== "embedding") return;
  throw new AppError("unknown_model", `There is no chat model ${model}; GET /ai/models lists them.`, { param });
}
