import { keyProviders } from "../config/provider-settings.ts";
import { defined } from "../lib/defined.ts";
import { AppError } from "../lib/errors.ts";
import type { ProviderKey } from "../tenancy/provider-keys.ts";
import type { ModelEntry } from "./model-schemas.ts";
import { type EdgeSettings, edgeModels, type ServedModel } from "./providers/edge/models.ts";
import { chats, type ProviderModel, settingFields } from "./providers/model.ts";
import type { Provider } from "./providers/provider.ts";
import { keyedProviders, ownProvider } from "./providers/registry.ts";

/** The temperature and `top_p` of every provider when a request names none; some models take no others. */
export const DEFAULT_SAMPLING = 1;

/** The model name that asks for routing by task. */
export const autoModel = "auto";

export type CataloguedModel = ProviderModel & {
  /** The id of one of the platform's providers, or the name of a tenant's custom one. */
  provider: string;
  /** For a custom provider's model: its connections and its key, which were set together. Absent if the key cannot be read. */
  reach?: () => { provider: Provider; key: ProviderKey };
};

export type Catalogue = ReturnType<typeof makeCatalogue>;

/** The models of all providers; the platform's own, which its settings name or its server lists, are the defaults. */
export function makeCatalogue(edge: EdgeSettings) {
  // The order of `GET /ai/models`; of chat models at the same price, `auto` takes the first.
  const ids = [...keyProviders].reverse();
  const publicModels = ids.flatMap((id) => keyedProviders[id].models.map((model) => ({ ...model, provider: id })));
  const taken = new Set([autoModel, ...publicModels.flatMap(({ id, aliases = [] }) => [id, ...aliases])]);
  let index = indexModels(edgeModels(edge), publicModels);
  return {
    get all() {
      return index.all;
    },
    /** Those that chat, the cheapest first. */
    get chatByPrice() {
      return index.chatByPrice;
    },
    get defaultChat() {
      return index.defaultChat;
    },
    defaultEmbedding: index.defaultEmbedding,
    /** The model of an id or alias; `auto` is none. */
    find: (idOrAlias: string) => index.byId.get(idOrAlias),
    /** Takes the models that the edge server lists, except names that models of other providers have. */
    serve(listed: readonly ServedModel[]): void {
      const own = listed.filter(({ id }) => !taken.has(id));
      index = indexModels(edgeModels(edge, own), publicModels);
    },
  };
}

function indexModels(served: ReturnType<typeof edgeModels>, publicModels: readonly CataloguedModel[]) {
  const toOwn = (model: ProviderModel): CataloguedModel => ({ ...model, provider: ownProvider });
  const defaultChat = toOwn(served.chat);
  const defaultEmbedding = toOwn(served.embedding);
  const all = [defaultChat, defaultEmbedding, ...served.others.map(toOwn), ...publicModels];
  const byId = new Map<string, CataloguedModel>();
  for (const model of all) for (const alias of model.aliases ?? []) byId.set(alias, model);
  for (const model of all) byId.set(model.id, model);
  const chatByPrice = all.filter(chats).sort((a, b) => priceOf(a) - priceOf(b));
  return { all, byId, chatByPrice, defaultChat, defaultEmbedding };
}

/** The price by which models are compared. Prompts are assumed three times as long as answers. */
const priceOf = ({ price }: CataloguedModel) => price.input * 3 + price.output;

/** The verb for each kind of model, for messages. */
const uses = { chat: "chats", embedding: "embeds", rerank: "reranks" };

/** The model that a request names. @throws AppError `unknown_model` if there is none, or if it is of the other kind. */
export function requireModel(
  model: CataloguedModel | undefined,
  id: string,
  kind: "chat" | "embedding" | "rerank",
  param = "model",
): CataloguedModel {
  if (model !== undefined && (kind === "chat" ? chats(model) : model.type === kind)) return model;
  const what =
    model === undefined
      ? `There is no model ${JSON.stringify(id.slice(0, 100))}`
      : `${model.id} is a model of the type ${model.type}, and this takes one that ${uses[kind]}`;
  const message = `${what}; GET /ai/models lists them, and /v1/models those that you can call.`;
  throw new AppError("unknown_model", message, { param });
}

/** A catalogued model as the interface shows it: prices for 1,000 tokens. */
export function toModelEntry(model: CataloguedModel): ModelEntry {
  const { id, name, provider, type, contextWindow, price, features, efforts, settings } = model;
  const { aliases, batch, priceSource, priceDate } = model;
  return defined({
    id,
    name,
    provider,
    type,
    contextWindow,
    inputCostPer1k: perThousand(price.input),
    outputCostPer1k: perThousand(price.output),
    supportedFeatures: efforts?.length ? [...features, "reasoning_effort"] : [...features],
    reasoningEfforts: efforts?.length ? [...efforts] : undefined,
    settings: chats(model) ? settings.map((setting) => settingFields[setting]) : undefined,
    temperature: chats(model) ? temperaturesOf(model.maxTemperature) : undefined,
    aliases: aliases && [...aliases],
    batch,
    priceSource,
    priceDate,
  });
}

/** The range of temperatures of a model with this highest one. */
export function temperaturesOf(maxTemperature: number | undefined): { min: number; max: number } {
  return maxTemperature === undefined
    ? { min: DEFAULT_SAMPLING, max: DEFAULT_SAMPLING }
    : { min: 0, max: maxTemperature };
}

/** Without the noise of a binary division: 0.13 a million is 0.00013, not 0.00013000000000000002. */
const perThousand = (perMillion: number) => Number((perMillion / 1_000).toPrecision(12));

/** The models of a tenant's own providers. */
type TenantModels = { find(tenantId: string, name: string): Promise<CataloguedModel | undefined> };

/**
 * The model that a name stands for when a tenant uses it: one of its custom providers', else the catalogue's, in which an edge
 * server may list any name.
 */
export async function findModel(
  { catalogue, customProviders }: { catalogue: Pick<Catalogue, "find">; customProviders: TenantModels },
  tenantId: string,
  name: string,
): Promise<CataloguedModel | undefined> {
  return (await customProviders.find(tenantId, name)) ?? catalogue.find(name);
}
