import { autoModel, findModel } from "./catalogue.ts";
import type { GatewayDeps } from "./deps.ts";
import { providerIds } from "./providers/registry.ts";
import { findKeys, notConfigured } from "./target.ts";

/**
 * Ids of the chat models that a tenant's calls can use right now, in the catalogue's order; a stand-in only when there is
 * nothing else.
 */
export async function usableModels(deps: Pick<GatewayDeps, "catalogue" | "keys">, tenantId: string): Promise<string[]> {
  const keys = await findKeys(deps, tenantId, { providers: providerIds });
  const usable = deps.catalogue.all.filter(({ type, provider }) => type !== "embedding" && keys.has(provider));
  const real = usable.filter(({ isStandIn }) => isStandIn !== true);
  return (real.length > 0 ? real : usable).map(({ id }) => id);
}

/**
 * The id of the chat model that a name stands for; `auto` stays, since it is chosen anew for each call.
 * @throws AppError `unknown_model`; `provider_not_configured`, `provider_key_unreadable` when the tenant cannot use it.
 */
export async function resolveModel(
  deps: Pick<GatewayDeps, "catalogue" | "keys">,
  tenantId: string,
  name: string,
): Promise<string> {
  if (name === autoModel) return autoModel;
  const model = findModel(deps.catalogue, name, "chat");
  const keys = await findKeys(deps, tenantId, { providers: [model.provider], required: model.provider });
  if (!keys.has(model.provider)) throw notConfigured(model);
  return model.id;
}
