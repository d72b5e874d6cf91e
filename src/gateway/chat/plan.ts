import { defined } from "../../defined.ts";
import { invalidRequest } from "../../errors.ts";
import type { ModelFallbacks } from "../../store/tenant-store.ts";
import { autoModel, type Catalogue, type CataloguedModel, findModel, toModelEntry } from "../catalogue.ts";
import type { GatewayDeps } from "../deps.ts";
import type { GatewayCaller } from "../money/account.ts";
import { providerIds } from "../providers/registry.ts";
import { findKeys, type KeyedTenant, withoutKey } from "../resilience/target.ts";
import type { ListedModel, ModelQuery } from "../schemas.ts";
import type { ChatRequest } from "./request.ts";
import { type Routing, routeAuto, routeNamed, withoutStub } from "./route-model.ts";

/** How a chat is to be served: by which model, with which keys, and by which others when that fails. */
export type Plan = KeyedTenant & { routing: Routing };
/** A chat that is planned. */
export type PlannedChat = { caller: GatewayCaller; request: ChatRequest; plan: Plan };

/** Plans a chat. @throws AppError `unknown_model`, `provider_not_configured`, `invalid_request`. */
export async function planChat(deps: GatewayDeps, tenantId: string, request: ChatRequest): Promise<Plan> {
  const { catalogue } = deps;
  if (request.model === autoModel) {
    const keys = await findKeys(deps, tenantId, { providers: providerIds });
    return { routing: routeAuto(catalogue, request, (provider) => keys.has(provider)), keys, tenantId };
  }
  const model = findModel(catalogue, request.model, "chat");
  const configured = (await deps.fallbacks.find(tenantId)).find((one) => catalogue.find(one.model) === model);
  const named = configured?.models.flatMap((id) => catalogue.find(id) ?? []); // one may not be catalogued any more
  const fallbacks = named?.filter(({ type }) => type !== "embedding") ?? [];
  const providers = new Set([model, ...fallbacks].map(({ provider }) => provider));
  const keys = await findKeys(deps, tenantId, { providers, required: model.provider });
  return { routing: routeNamed(model, fallbacks, request, (provider) => keys.has(provider)), keys, tenantId };
}

/**
 * Checks what a tenant wants to be asked in the place of models that fail.
 * @throws AppError `unknown_model` for a model that is not catalogued, `invalid_request` for one that is named twice.
 */
export function checkFallbacks(catalogue: Catalogue, fallbacks: readonly ModelFallbacks[]): void {
  const add = (named: Set<CataloguedModel>, id: string, param: string) => {
    const model = findModel(catalogue, id, "chat", param);
    if (named.has(model)) throw invalidRequest(param, `${model.id} is named twice.`);
    named.add(model);
    return model;
  };
  const replaced = new Set<CataloguedModel>();
  for (const [n, { model, models }] of fallbacks.entries()) {
    const named = new Set([add(replaced, model, `fallbacks[${n}].model`)]);
    for (const [m, id] of models.entries()) add(named, id, `fallbacks[${n}].models[${m}]`);
  }
}

/** The models of a query, each with whether the tenant's calls can use it right now. */
export async function listModels(deps: GatewayDeps, tenantId: string, query: ModelQuery): Promise<ListedModel[]> {
  const { provider, type, available } = query;
  const keys = await findKeys(deps, tenantId, { providers: providerIds });
  const isWanted = (model: CataloguedModel) =>
    (provider ?? model.provider) === model.provider &&
    (type ?? model.type) === model.type &&
    (available === undefined || keys.has(model.provider) === (available === "true"));
  return deps.catalogue.all.filter(isWanted).map((model) => {
    const isAvailable = keys.has(model.provider);
    const unavailableBecause = isAvailable ? undefined : withoutKey(model);
    return defined({ ...toModelEntry(model), available: isAvailable, unavailableBecause });
  });
}

/** Ids of the chat models that a tenant's calls can use right now, in the catalogue's order; the stub only if it is alone. */
export async function usableModels(deps: GatewayDeps, tenantId: string): Promise<string[]> {
  const keys = await findKeys(deps, tenantId, { providers: providerIds });
  const usable = deps.catalogue.all.filter(({ type, provider }) => type !== "embedding" && keys.has(provider));
  return withoutStub(usable).map(({ id }) => id);
}

/**
 * The id of the chat model that a name stands for. `auto` stays, since it is chosen again for each call, unless there is a
 * task to choose a model for.
 * @throws AppError `unknown_model`; `provider_not_configured`, `provider_key_unreadable` when the tenant cannot use it.
 */
export async function resolveModel(deps: GatewayDeps, tenantId: string, name: string, task?: string): Promise<string> {
  if (name === autoModel && task === undefined) return autoModel;
  const messages = [{ role: "user" as const, content: task ?? "" }];
  return (await planChat(deps, tenantId, { model: name, messages })).routing.model.id;
}
