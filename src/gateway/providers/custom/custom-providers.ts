import { defined } from "../../../lib/defined.ts";
import { AppError, invalidRequest, notFound } from "../../../lib/errors.ts";
import { makeStaleWhileRevalidate } from "../../../lib/stale-while-revalidate.ts";
import { assertFetchable } from "../../../net/egress.ts";
import {
  type CustomModelRecord,
  type CustomProviderRecord,
  type CustomProviderStore,
  customProviderId,
} from "../../../store/custom-provider-store.ts";
import { bytesOf } from "../../../store/provider-key-store.ts";
import { unlessDuplicate } from "../../../store/writes.ts";
import type { DataKeys } from "../../../tenancy/data-keys.ts";
import { open, seal } from "../../../tenancy/envelope.ts";
import type { ProviderKey } from "../../../tenancy/provider-keys.ts";
import type { Quotas } from "../../../tenancy/quotas.ts";
import type { CataloguedModel } from "../../catalogue.ts";
import { chats, type ProviderModel } from "../model.ts";
import { isCustom } from "../registry.ts";
import { type WireName, wires } from "../wires.ts";
import { type ConnectionsDeps, makeConnections } from "./connections.ts";
import { type CustomProviderBody, isCustomName } from "./schemas.ts";

/** Maximum tenants whose models are in memory; the least recently used are dropped. */
const MAX_TENANTS = 1_000;
/** Maximum providers that are read for a tenant, regardless of its quota. */
const MAX_PROVIDERS = 200;
/** Shortest key of which a preview shows something. */
const MIN_SHOWN = 20;

export type CustomProviders = ReturnType<typeof makeCustomProviders>;

type CustomProvidersDeps = ConnectionsDeps & {
  store: CustomProviderStore;
  dataKeys: Pick<DataKeys, "find" | "ensure">;
  quotas: Pick<Quotas, "check">;
};

/** Providers that tenants add for themselves, each seen by its own tenant alone. */
export function makeCustomProviders(deps: CustomProvidersDeps) {
  const { store, dataKeys, logger } = deps;
  const connections = makeConnections(deps);
  const read = async (tenantId: string): Promise<ReadonlyMap<string, CataloguedModel>> => {
    const records = await store.list(tenantId, MAX_PROVIDERS);
    // The platform may have got a provider of this name since then.
    const usable = records.filter(({ name }) => isCustom(name));
    const dataKey = usable.length === 0 ? null : await dataKeys.find(tenantId);
    const models = usable.flatMap((record) => {
      const key = dataKey && decrypt(dataKey, record);
      if (key === null)
        logger.error({ tenantId, provider: record.name }, "a custom provider's key cannot be decrypted");
      return toCustomModels(record, key === null ? undefined : () => ({ key, provider: connections.open(record) }));
    });
    return new Map(models.map((model) => [model.id, model]));
  };
  const cache = makeStaleWhileRevalidate(read, MAX_TENANTS);
  const sealFor = async (tenantId: string, name: string, key: string) => ({
    sealed: seal(await dataKeys.ensure(tenantId), Buffer.from(key, "utf8"), contextOf(tenantId, name)),
    preview: key.length < MIN_SHOWN ? "…" : `${key.slice(0, 4)}…${key.slice(-4)}`,
    at: new Date(),
  });
  return {
    /** All models of a tenant's custom providers, by id; never older than 4 s. */
    models: async (tenantId: string) => cache.find(tenantId),
    /** The model `provider/id` of a tenant. */
    async find(tenantId: string, name: string): Promise<CataloguedModel | undefined> {
      return name.includes("/") ? (await cache.find(tenantId)).get(name) : undefined;
    },
    /** What tenants see of their custom providers: never the keys. */
    list: async (tenantId: string) => (await store.list(tenantId, MAX_PROVIDERS)).map(toProviderView),
    /** @throws AppError `not_found`. */
    async get(tenantId: string, name: string) {
      const record = await store.find(tenantId, name);
      if (record === null) throw notFound("custom provider");
      return toProviderView(record);
    },
    /**
     * Sets a custom provider and its key. It replaces the provider of this name.
     * @throws AppError `invalid_request`, `source_refused` for its settings; `quota_exceeded`; `unavailable` if no master key
     * is set.
     */
    async put(tenantId: string, name: string, { key, ...settings }: CustomProviderBody) {
      if (!isCustomName(name)) {
        const form = "1 to 40 lower-case letters, digits or -, and no provider of the platform";
        throw invalidRequest("name", `name must be ${form}.`);
      }
      const baseUrl = checkSettings(settings, deps.allowOrigins);
      const given = { ...settings, baseUrl, models: settings.models.map((model) => defined(model)) };
      const change = { ...given, ...(await sealFor(tenantId, name, key)) };
      let record = await store.replace(tenantId, name, change);
      if (record === null) {
        await deps.quotas.check(tenantId, "customProviders");
        const inserted = await unlessDuplicate(store.insert(tenantId, name, change));
        record = inserted ?? (await store.replace(tenantId, name, change)); // another call was first
      }
      if (record === null)
        throw new AppError("wrong_state", "The custom provider was removed meanwhile; set it again.");
      cache.forget(tenantId);
      logger.info({ tenantId, provider: name }, "a custom provider was set");
      return toProviderView(record);
    },
    /** @throws AppError `not_found`. */
    async remove(tenantId: string, name: string): Promise<void> {
      if (!(await store.remove(tenantId, name))) throw notFound("custom provider");
      cache.forget(tenantId);
      connections.drop(customProviderId(tenantId, name));
      logger.info({ tenantId, provider: name }, "a custom provider was removed");
    },
    /** Ends all connections; calls under way fail. */
    close: connections.close,
  };
}

/** The additional data to which a sealed key is bound, so that it opens nowhere else. */
const contextOf = (tenantId: string, name: string) => `custom-provider-key:${tenantId}:${name}`;

function decrypt(dataKey: Buffer, { _id, tenantId, name, sealed, updatedAt }: CustomProviderRecord) {
  const plain = open(dataKey, bytesOf(sealed), contextOf(tenantId, name));
  const key: ProviderKey | null = plain && {
    keyId: _id,
    apiKey: plain.toString("utf8"),
    source: "tenant",
    revision: updatedAt.getTime(),
  };
  return key;
}

/** Checks what the schema cannot say of settings; returns the base URL as it is stored. @throws AppError `invalid_request`, `source_refused`, which name the field. */
function checkSettings(
  { baseUrl, wire, models }: Omit<CustomProviderBody, "key">,
  allowOrigins: readonly string[],
): string {
  const { url, isAllowed } = assertFetchable(baseUrl, allowOrigins, "baseUrl");
  if (url.protocol !== "https:" && !isAllowed) throw invalidRequest("baseUrl", "baseUrl must be an https URL.");
  if (url.search !== "" || url.hash !== "")
    throw invalidRequest("baseUrl", "baseUrl must have neither a query nor a fragment.");
  for (const [at, { id, type, supportedFeatures }] of models.entries()) {
    if (models.findIndex((one) => one.id === id) < at)
      throw invalidRequest(`models[${at}].id`, `${id} is named twice.`);
    if (!chats({ type }) && !wires[wire].hasEmbeddings)
      throw invalidRequest(`models[${at}].type`, `The wire format ${wire} has no models of type ${type}.`);
    const lacking = supportedFeatures?.find((feature) => wires[wire].lacks?.includes(feature));
    if (lacking !== undefined)
      throw invalidRequest(`models[${at}].supportedFeatures`, `The wire format ${wire} has no ${lacking}.`);
  }
  return url.href.replace(/\/+$/, "");
}

function toProviderView({ name, baseUrl, wire, models, preview, createdAt, updatedAt }: CustomProviderRecord) {
  return { name, baseUrl, wire, models, keyPreview: preview, createdAt, updatedAt };
}

/** The models of a custom provider in the catalogue's form; `reach` is absent where its key cannot be read. */
function toCustomModels(record: CustomProviderRecord, reach: CataloguedModel["reach"]): CataloguedModel[] {
  return record.models.map((model) => toCustomModel(record, model, reach));
}

function toCustomModel(
  { name: provider, wire, updatedAt }: CustomProviderRecord,
  model: CustomModelRecord,
  reach: CataloguedModel["reach"],
): CataloguedModel {
  const { id, type, contextWindow } = model;
  const common = wires[wire as WireName].models; // as the schema let it in, here and below
  const hasChats = chats(model);
  const price = {
    input: model.inputUsdPerMTok,
    output: model.outputUsdPerMTok,
    cached: model.cachedInputUsdPerMTok,
    cacheWrite: model.cacheWriteUsdPerMTok,
  };
  return defined({
    id: `${provider}/${id}`,
    wireId: id,
    provider,
    name: model.name ?? id,
    type,
    contextWindow,
    maxOutput: hasChats ? (model.maxOutput ?? contextWindow) : 0,
    price: defined(price),
    ...(hasChats ? common : { features: [], settings: [] }),
    ...(defined({ features: model.supportedFeatures, efforts: model.reasoningEfforts }) as Partial<ProviderModel>),
    priceSource: "set by your tenant",
    priceDate: updatedAt.toISOString().slice(0, 10),
    reach,
  });
}
