import { AppError } from "../../errors.ts";
import type { ModelFallbacks } from "../../store/tenant-store.ts";
import { autoModel, type Catalogue, type CataloguedModel, findModel } from "../catalogue.ts";
import type { GatewayDeps } from "../deps.ts";
import type { GatewayCaller } from "../money/account.ts";
import { providerIds } from "../providers/registry.ts";
import { findKeys, notConfigured, type UsableKeys } from "../resilience/target.ts";
import type { ChatRequest } from "./request.ts";
import { type Routing, routeAuto, routeNamed } from "./route-model.ts";

/** How a chat is to be served: by which model, with which keys, and by whom else when that fails. */
export type Plan = { routing: Routing; keys: UsableKeys; tenantId: string };
/** A chat that is planned. */
export type PlannedChat = { caller: GatewayCaller; request: ChatRequest; plan: Plan };

/**
 * Plans a chat; a promise only when something of the tenant's (keys, fallbacks) has to be read.
 * @throws AppError `unknown_model`, `provider_not_configured`, `invalid_request`.
 */
export function planChat(deps: GatewayDeps, tenantId: string, request: ChatRequest): Plan | Promise<Plan> {
  const { catalogue } = deps;
  if (request.model === autoModel) {
    return then(findKeys(deps, tenantId, { providers: providerIds }), (keys) => ({
      routing: routeAuto(catalogue, request, (provider) => keys.has(provider)),
      keys,
      tenantId,
    }));
  }
  const model = findModel(catalogue, request.model, "chat");
  return then(deps.fallbacks.find(tenantId), (configured) => {
    const fallbacks = fallbacksOf(catalogue, configured, model);
    const providers = new Set([model, ...fallbacks].map(({ provider }) => provider));
    return then(findKeys(deps, tenantId, { providers, required: model.provider }), (keys) => ({
      routing: routeNamed(model, fallbacks, request, (provider) => keys.has(provider)),
      keys,
      tenantId,
    }));
  });
}

/** Goes on with a value at once, or when it is there. */
function then<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** The models that a tenant wants in the place of one; what is no longer catalogued is passed over. */
function fallbacksOf(
  catalogue: Catalogue,
  configured: readonly ModelFallbacks[],
  model: CataloguedModel,
): CataloguedModel[] {
  if (configured.length === 0) return [];
  const entry = configured.find((one) => catalogue.find(one.model) === model);
  return (entry?.models ?? []).flatMap((id) => catalogue.find(id) ?? []).filter((one) => one.type !== "embedding");
}

/**
 * Checks what a tenant wants to be asked in the place of models that fail.
 * @throws AppError `unknown_model` for a model that is not catalogued, `invalid_request` for one that is named twice.
 */
export function checkFallbacks(catalogue: Catalogue, fallbacks: readonly ModelFallbacks[]): void {
  const find = (id: string, param: string) => {
    try {
      return findModel(catalogue, id, "chat");
    } catch (error) {
      throw error instanceof AppError ? new AppError(error.code, error.message, { param }) : error;
    }
  };
  const seen = new Set<CataloguedModel>();
  const requireNew = (known: Set<CataloguedModel>, model: CataloguedModel, param: string) => {
    if (known.has(model)) throw new AppError("invalid_request", `${model.id} is named twice.`, { param });
    known.add(model);
  };
  for (const [n, { model, models }] of fallbacks.entries()) {
    const replaced = find(model, `fallbacks[${n}].model`);
    requireNew(seen, replaced, `fallbacks[${n}].model`);
    const named = new Set([replaced]);
    for (const [m, id] of models.entries()) {
      const param = `fallbacks[${n}].models[${m}]`;
      requireNew(named, find(id, param), param);
    }
  }
}

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
