import { autoModel, findModel } from "./catalogue.ts";
import type { ChatRequest } from "./chat-request.ts";
import type { GatewayDeps } from "./deps.ts";
import { type ProviderId, providerIds } from "./providers/provider.ts";
import { type Routing, routeModel } from "./route-model.ts";
import { findKeys, type UsableKeys } from "./target.ts";

/** How a chat is to be served: by which model, with which keys, and by whom else when that fails. */
export type Plan = { routing: Routing; keys: UsableKeys };

/**
 * Plans a chat; a promise only when a tenant's key has to be read.
 * @throws AppError `unknown_model`, `provider_not_configured`, `invalid_request`.
 */
export function planChat(deps: GatewayDeps, tenantId: string, request: ChatRequest): Plan | Promise<Plan> {
  const providers: readonly ProviderId[] =
    request.model === autoModel ? providerIds : [findModel(deps.catalogue, request.model, "chat").provider];
  const toPlan = (keys: UsableKeys): Plan => ({
    routing: routeModel(deps.catalogue, request, (provider) => keys.has(provider)),
    keys,
  });
  const keys = findKeys(deps, tenantId, providers);
  return keys instanceof Promise ? keys.then(toPlan) : toPlan(keys);
}
