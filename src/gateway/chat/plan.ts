import { defined } from "../../lib/defined.ts";
import { invalidRequest } from "../../lib/errors.ts";
import type { ModelFallbacks } from "../../store/tenant-store.ts";
import { autoModel, type CataloguedModel, findModel, requireModel, toModelEntry } from "../catalogue.ts";
import type { GatewayDeps } from "../deps.ts";
import type { ListedModel, ModelQuery } from "../model-schemas.ts";
import type { GatewayCaller } from "../money/account.ts";
import { chats } from "../providers/model.ts";
import { providerIds } from "../providers/registry.ts";
import { findKeys, isUsable, type KeyedTenant, withoutKey } from "../resilience/target.ts";
import { hasSettings, settingMisfits } from "./capabilities.ts";
import type { CompressionReport } from "./outcome.ts";
import type { ChatRequest } from "./request.ts";
import { requireCheckable } from "./response-format.ts";
import { misfitsOf, type Routing, routeAuto, routeNamed, withoutStub } from "./route-model.ts";

/** How to serve a chat: by which model, with which keys, and by which fallbacks. */
export type Plan = KeyedTenant & { routing: Routing };
/** A planned chat that has not been sent yet. */
export type PlannedChat = {
  caller: GatewayCaller;
  /** The request as it is sent, compressed if that was wanted. */
  request: ChatRequest;
  plan: Plan;
  /** Settings that the model does not take as requested, such as `temperature;used=1` or `verbosity`. */
  ignored: readonly string[];
  /** What compression did, if it was wanted. */
  compression?: CompressionReport;
};

/**
 * Plans a chat. @throws AppError `unknown_model`, `provider_not_configured`, `invalid_request`; what checks of schemas throw.
 */
export async function planChat(deps: GatewayDeps, tenantId: string, request: ChatRequest): Promise<Plan> {
  const { catalogue } = deps;
  if (request.responseFormat !== undefined)
    await requireCheckable(deps.schemaChecks, { tenantId }, request.responseFormat);
  if (request.model === autoModel) {
    const keys = await findKeys(deps, tenantId, { providers: providerIds });
    return { routing: routeAuto(catalogue, request, (model) => isUsable(keys, model)), keys, tenantId };
  }
  const model = requireModel(await findModel(deps, tenantId, request.model), request.model, "chat");
  const configured = (await deps.fallbacks.find(tenantId)).find(
    (one) => one.model === model.id || catalogue.find(one.model) === model,
  );
  const all = configured && (await Promise.all(configured.models.map((id) => findModel(deps, tenantId, id))));
  const named = all?.filter((one) => one !== undefined); // a fallback may not exist any more
  const fallbacks = named?.filter(chats) ?? [];
  const providers = new Set([model, ...fallbacks].map(({ provider }) => provider));
  const keys = await findKeys(deps, tenantId, { providers, required: model.provider });
  return { routing: routeNamed(model, fallbacks, request, (one) => isUsable(keys, one)), keys, tenantId };
}

/**
 * The same as `ignored` of a planned chat, for one that is only accepted here and planned by its job. The model that `auto`
 * stands for is planned only if there is something that it may not take. Throws as `planChat` does.
 */
export async function ignoredBy(deps: GatewayDeps, tenantId: string, request: ChatRequest): Promise<string[]> {
  const isChosen = request.model === autoModel && hasSettings(request);
  const model = isChosen
    ? (await planChat(deps, tenantId, request)).routing.model
    : await findModel(deps, tenantId, request.model);
  return model === undefined ? [] : ignoredAt(model, request);
}

/** Settings of a chat that a model does not take, as in `ignored` of a planned chat. */
export function ignoredAt(model: CataloguedModel, request: ChatRequest): string[] {
  const misfits = [...misfitsOf(model, request), ...settingMisfits(model, request)];
  return misfits.map(({ param, used }) => (used === undefined ? param : `${param};used=${used}`));
}

/** Reports the settings that a fallback does not take. */
export function reportFallback({ onIgnored }: GatewayCaller, { model, skipped }: Routing, request: ChatRequest): void {
  if (onIgnored === undefined || skipped === undefined) return;
  for (const name of ignoredAt(model, request)) onIgnored(name);
}

/**
 * Checks a tenant's fallbacks.
 * @throws AppError `unknown_model` for a model that the tenant does not have, `invalid_request` for a model that is named
 * twice.
 */
export async function checkFallbacks(
  deps: GatewayDeps,
  tenantId: string,
  fallbacks: readonly ModelFallbacks[],
): Promise<void> {
  const add = async (named: Set<string>, name: string, param: string) => {
    const { id } = requireModel(await findModel(deps, tenantId, name), name, "chat", param);
    if (named.has(id)) throw invalidRequest(param, `${id} is named twice.`);
    named.add(id);
    return id;
  };
  const replaced = new Set<string>();
  for (const [n, { model, models }] of fallbacks.entries()) {
    const named = new Set([await add(replaced, model, `fallbacks[${n}].model`)]);
    for (const [m, id] of models.entries()) await add(named, id, `fallbacks[${n}].models[${m}]`);
  }
}

/** The models of a query, each with whether the tenant's calls can use it right now. */
export async function listModels(deps: GatewayDeps, tenantId: string, query: ModelQuery): Promise<ListedModel[]> {
  const { provider, type, available } = query;
  const custom = await deps.customProviders.models(tenantId);
  const all = [...deps.catalogue.all.filter(({ id }) => !custom.has(id)), ...custom.values()];
  if (provider !== undefined && !all.some((model) => model.provider === provider))
    throw invalidRequest("provider", `There is no provider ${provider}.`);
  const keys = await findKeys(deps, tenantId, { providers: providerIds });
  const isWanted = (model: CataloguedModel) =>
    (provider ?? model.provider) === model.provider &&
    (type ?? model.type) === model.type &&
    (available === undefined || isUsable(keys, model) === (available === "true"));
  return all.filter(isWanted).map((model) => {
    const isAvailable = isUsable(keys, model);
    const unavailableBecause = isAvailable ? undefined : withoutKey(model);
    return defined({ ...toModelEntry(model), available: isAvailable, unavailableBecause });
  });
}

/** Ids of the chat models that a tenant's calls can use right now, in the catalogue's order; the stub only if it is alone. */
export async function usableModels(deps: GatewayDeps, tenantId: string): Promise<string[]> {
  const keys = await findKeys(deps, tenantId, { providers: providerIds });
  const usable = deps.catalogue.all.filter((model) => chats(model) && keys.has(model.provider));
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

/**
 * The id of the chat model of a name, which may be `auto`, or else of the platform's default one; undefined if that is a stub.
 * @throws AppError `unknown_model`; `provider_not_configured`, `provider_key_unreadable` when the tenant cannot use it.
 */
export async function findWriter(deps: GatewayDeps, tenantId: string, name?: string): Promise<string | undefined> {
  const plan = await planChat(deps, tenantId, { model: name ?? deps.catalogue.defaultChat.id, messages: [] });
  const { id, isStub } = plan.routing.model;
  return isStub ? undefined : id;
}
