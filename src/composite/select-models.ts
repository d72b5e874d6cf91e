import { AppError } from "../errors.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { isUsedUp } from "../gateway/money/budget.ts";
import { type PatternId, patterns } from "./patterns.ts";
import { type ProfileId, profiles } from "./profiles.ts";

/** The members of a run, in order, and who judges. */
export type Selection = { models: string[]; judge: string };

/**
 * The models of a run: those that the caller names, of which the first one also judges; else the profile's, as far as the
 * tenant can use them, then others that it can use. Different ones come first; where there are too few they serve again.
 * @throws AppError `invalid_request` for too few models, `unknown_model`, `provider_not_configured`.
 */
export async function selectModels(
  gateway: Pick<Gateway, "usableModels" | "resolveModel">,
  input: { tenantId: string; pattern: PatternId; profile: ProfileId; models?: readonly string[] | undefined },
): Promise<Selection> {
  const { tenantId, pattern, profile } = input;
  const { minModels, defaultModels } = patterns[pattern];
  if (input.models !== undefined) {
    if (input.models.length < minModels) {
      const message = `The pattern ${pattern} needs at least ${minModels} ${minModels === 1 ? "model" : "models"}.`;
      throw new AppError("invalid_request", message, { param: "models", details: { minModels } });
    }
    const models = await Promise.all(input.models.map((id, at) => resolve(gateway, { tenantId, id, at })));
    return { models, judge: models[0] ?? "" };
  }
  const usable = await gateway.usableModels(tenantId);
  const preferred = profiles[profile].models.filter((id) => usable.includes(id));
  const ordered = [...new Set([...preferred, ...usable])];
  const models = Array.from({ length: defaultModels }, (_, index) => ordered[index % ordered.length] ?? "");
  return { models, judge: models[0] ?? "" };
}

async function resolve(
  gateway: Pick<Gateway, "resolveModel">,
  { tenantId, id, at }: { tenantId: string; id: string; at: number },
): Promise<string> {
  try {
    return await gateway.resolveModel(tenantId, id);
  } catch (error) {
    if (!(error instanceof AppError) || error.param !== "model") throw error;
    throw new AppError(error.code, error.message, { param: `models[${at}]`, details: error.details, cause: error });
  }
}

/**
 * Refuses at submission what the budget would stop at the first call; each call checks it again.
 * @throws AppError `budget_exhausted` when nothing is left of the tenant's budget and a model costs something.
 */
export async function checkBudget(
  gateway: Pick<Gateway, "budget" | "findModel">,
  tenantId: string,
  models: readonly string[],
): Promise<void> {
  const costs = (id: string) => (gateway.findModel(id)?.outputCostPer1k ?? 1) > 0; // `auto` may choose one that does
  if (!models.some(costs)) return;
  const budget = await gateway.budget(tenantId);
  if (budget === null || !isUsedUp(budget)) return;
  throw new AppError("budget_exhausted", `The budget of ${budget.limitUsd} USD for ${budget.month} is used up.`, {
    details: budget,
  });
}
