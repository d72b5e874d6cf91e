import { efforts, type ProviderModel, wordSettings } from "../model.ts";
import { offlineModelId } from "./offline-chat.ts";
import { offlineEmbeddingModelId } from "./offline-embed.ts";

/** The alias that names the platform's default chat model, and the model that is used when a request names none. */
export const defaultModelAlias = "meta-llm";
/** The platform's own models cost the caller nothing. */
const free = { price: { input: 0, output: 0 }, priceSource: "the platform's own", priceDate: "2026-11-20" };
/** Assumed of a server that does not report its window; only shown and used by `auto`, never enforced. */
const ASSUMED_CONTEXT = 131_072;

/** What a server is asked for while neither a setting nor the server itself names a model. */
const UNNAMED = "default";
/** How embedding models are named: a list does not say what a model is for. */
const embeddingName = /embed|\bbge-|\be5-|\bgte-/i;

/** What servers of OpenAI's wire format commonly take. One that does not take a part of it rejects the call. */
const SERVER = {
  features: ["streaming", "tool_use", "tool_choice", "vision", "json_schema", "json_object"],
  efforts,
  settings: ["seed", "parallelToolCalls", "user", ...wordSettings],
} as const satisfies Partial<ProviderModel>;

/** A model that a server lists; vLLM and servers like it report its window, in tokens. */
export type ServedModel = { id: string; max_model_len?: number | null | undefined };

/** The platform's own server. Without a base URL the built-in offline model answers. */
export type EdgeSettings = {
  baseUrl: string | undefined;
  apiKey: string | undefined;
  /** Its chat model; undefined: all that it lists. */
  model: string | undefined;
  embeddingModel: string | undefined;
};

/**
 * The models that the edge provider serves: those of its settings, else those that its server lists. The first chat model is
 * the default.
 */
export function edgeModels({ baseUrl, model, embeddingModel }: EdgeSettings, listed: readonly ServedModel[] = []) {
  if (baseUrl === undefined) return { chat: offlineChat, embedding: offlineEmbedding, others: [] };
  const isEmbedding = ({ id }: ServedModel) => id === embeddingModel || embeddingName.test(id);
  const [first = { id: model ?? UNNAMED }, ...chats] = listed.filter((one) => !isEmbedding(one));
  const aliases = [defaultModelAlias, ...(first.id === UNNAMED || model !== undefined ? [] : [UNNAMED])];
  const embeddings = listed.filter(
    (one) => isEmbedding(one) && one.id !== embeddingModel && one.id !== offlineEmbeddingModelId,
  );
  const chat: ProviderModel = { ...toServedChat(first), aliases };
  return {
    chat,
    embedding: embeddingModel === undefined ? offlineEmbedding : toServedEmbedding({ id: embeddingModel }),
    others: [
      ...chats.map(toServedChat),
      ...embeddings.map(toServedEmbedding),
      // Needed for queries on documents that were embedded before the server was set up.
      ...(embeddingModel === undefined ? [] : [offlineEmbedding]),
    ],
  };
}

const toServedChat = ({ id, max_model_len: window }: ServedModel): ProviderModel => ({
  id,
  name: `Edge server: ${id}`,
  type: "chat",
  contextWindow: window ?? ASSUMED_CONTEXT,
  maxOutput: window ?? ASSUMED_CONTEXT,
  maxTemperature: 2,
  ...SERVER,
  ...free,
});

const toServedEmbedding = ({ id, max_model_len: window }: ServedModel): ProviderModel => ({
  id,
  name: `Edge server: ${id}`,
  type: "embedding",
  contextWindow: window ?? ASSUMED_CONTEXT,
  maxOutput: 0,
  features: [],
  settings: [],
  ...free,
});

const offlineChat: ProviderModel = {
  ...toServedChat({ id: offlineModelId }),
  aliases: [defaultModelAlias],
  name: "Switchyard offline model (extractive, deterministic)",
  efforts: [],
  settings: [],
  isStub: true,
};
const offlineEmbedding: ProviderModel = {
  ...toServedEmbedding({ id: offlineEmbeddingModelId }),
  name: "Switchyard offline embedding (feature hashing, 512)",
  isStub: true,
};
