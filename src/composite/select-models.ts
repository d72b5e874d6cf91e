import { AppError } from "../errors.ts";
import type { Gateway } from "../gateway/gateway.ts";
import { patterns } from "./patterns.ts";
import { type ProfileId, profiles } from "./profiles.ts";
import type { CompositeInput } from "./schemas.ts";

type Wanted = CompositeInput & { tenantId: string };

/**
 * The models of a run: those that the caller names, of which the first one also judges; else the profile's, as far as the
 * tenant can use them, then others that it can use. Different ones come first; where there are too few they serve again.
 * @throws AppError `unknown_model`, `provider_not_configured`.
 */
export async function selectModels(
  gateway: Pick<Gateway, "usableModels" | "resolveModel">,
  { tenantId, pattern, profile, input, models: named }: Wanted,
): Promise<{ models: string[]; judge: string }> {
  const { minModels, defaultModels } = patterns[pattern];
  const hasNames = named && named.length > 0;
  const available = hasNames
    ? await Promise.all(named.map((name, at) => resolve(gateway, { tenantId, name, at, input })))
    : preferredOf(await gateway.usableModels(tenantId), profile);
  const count = hasNames ? Math.max(minModels, named.length) : defaultModels;
  const models = Array.from({ length: count }, (_, index) => available[index % available.length] ?? "");
  return { models, judge: models[0] ?? "" };
}

/** The profile's models first, of those that the tenant can use. */
function preferredOf(usable: readonly string[], profile: ProfileId): string[] {
  return [...new Set([...profiles[profile].models.filter((id) => usable.includes(id)), ...usable])];
}

/** The model that a name stands for; `auto` is chosen once, by the input, so that members can be compared. */
async function resolve(
  gateway: Pick<Gateway, "resolveModel">,
  { tenantId, name, at, input }: { tenantId: string; name: string; at: number; input: string },
): Promise<string> {
  try {
    return await gateway.resolveModel(tenantId, name, input);
  } catch (error) {
    if (!(error instanceof AppError) || error.param !== "model") throw error;
    throw new AppError(error.code, error.message, { param: `models[${at}]`, details: error.details, cause: error });
  }
}
