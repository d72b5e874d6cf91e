import { z } from "zod";
import { AppError } from "../errors.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { GuardedRequest } from "../net/guarded-request.ts";
import { eachStep, type PlannedStep, planSteps } from "./plan.ts";
import type { WorkflowBody } from "./schemas.ts";
import { inField, stepIdsIn, textsOf } from "./step-texts.ts";

export type CheckDeps = { gateway: Pick<Gateway, "findModel">; outside: Pick<GuardedRequest, "check"> };

/** Longest definition, in characters of JSON. */
const MAX_DEFINITION = 1_000_000;

const invalid = (param: string, message: string) => new AppError("invalid_request", message, { param });

/**
 * What the schema cannot say of a definition: ids that are unique, expressions that parse, names of steps that come before,
 * models that there are, addresses that may be called, an input schema that is one.
 * @throws AppError `invalid_request`, `unknown_model`, `source_refused`; `param` names the field.
 */
export function checkDefinition(deps: CheckDeps, body: WorkflowBody): void {
  const { steps, inputSchema } = body;
  const { length } = JSON.stringify(body);
  if (length > MAX_DEFINITION) {
    const message = `The definition has ${length} characters as JSON; ${MAX_DEFINITION} is the most.`;
    throw invalid("steps", message); // each run keeps a copy
  }
  const known = new Set<string>();
  for (const planned of eachStep(planSteps(steps))) {
    const { id, field, step } = planned;
    if (known.has(id))
      throw invalid(`${field}.id`, `There is a step ${id} before this one: give each an id of its own.`);
    checkTexts(planned, known);
    if (step.type === "ai_completion") checkModel(deps, step.model, `${field}.model`);
    if (step.type === "webhook" && !step.url.includes("{{")) deps.outside.check(step.url, `${field}.url`);
    known.add(id);
  }
  if (inputSchema !== undefined) toInputSchema(inputSchema);
}

function checkTexts(planned: PlannedStep, known: ReadonlySet<string>): void {
  const { field } = planned;
  for (const text of inField(field, () => textsOf(planned))) {
    const param = `${field}.${text.at}`;
    const unknown = inField(param, () => stepIdsIn(text)).find((id) => !known.has(id));
    if (unknown !== undefined) throw invalid(param, `It names steps.${unknown}, which is no step before this one.`);
  }
}

function checkModel({ gateway }: CheckDeps, model: string, param: string): void {
  const type = model === "auto" ? "chat" : gateway.findModel(model)?.type;
  if (type !== undefined && type !== "embedding") return;
  throw new AppError("unknown_model", `There is no chat model ${model}; GET /ai/models lists them.`, { param });
}

/** A zod schema of a JSON Schema. @throws AppError `invalid_request` when it is none, or has what cannot be checked. */
export function toInputSchema(inputSchema: Record<string, unknown>): z.ZodType {
  try {
    return z.fromJSONSchema(inputSchema as Parameters<typeof z.fromJSONSchema>[0]);
  } catch (error) {
    const why = error instanceof Error ? error.message.slice(0, 200) : "";
    throw invalid("inputSchema", `It is no JSON Schema that can be checked: ${why}`);
  }
}
