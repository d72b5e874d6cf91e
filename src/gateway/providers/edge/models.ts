import { efforts, type ProviderModel } from "../model.ts";
import { offlineModelId } from "./offline-chat.ts";
import { offlineEmbeddingModelId } from "./offline-embed.ts";

/** The alias that names the platform's default chat model, and the model that is used when a request names none. */
export const defaultModelAlias = "meta-llm";
/** The platform's own models cost the caller nothing. */
const free = { price: { input: 0, output: 0 }, priceSource: "the platform's own", priceDate: "2026-11-20" };
/** Assumed of a server that does not report its window; only shown and used by `auto`, never enforced. */
const ASSUMED_CONTEXT = 131_072;

const OFFLINE = { features: ["streaming", "tool_use", "tool_choice"], settings: [], isStub: true } as const;
/** What servers of OpenAI's wire format commonly take. One that does not take a part of it rejects the call. */
const SERVER = {
  features: [...OFFLINE.features, "vision", "json_schema", "json_object"],
  efforts,
  settings: ["seed", "parallelToolCalls", "user"],
} as const satisfies Partial<ProviderModel>;

/** The platform's own server. Without a base URL the built-in offline model answers. */
export type EdgeSettings = {
  baseUrl: string | undefined;
  apiKey: string | undefined;
  model: string;
  embeddingModel: string | undefined;
};

/** What the edge provider serves by its settings. */
export function edgeModels({ baseUrl, model, embeddingModel }: EdgeSettings) {
  const isOffline = baseUrl === undefined;
  const served = isOffline ? undefined : embeddingModel;
  const chat: ProviderModel = {
    id: isOffline ? offlineModelId : model,
    aliases: [defaultModelAlias],
    name: isOffline ? "Switchyard offline model (extractive, deterministic)" : `Edge server: ${model}`,
    type: "chat",
    contextWindow: ASSUMED_CONTEXT,
    maxOutput: ASSUMED_CONTEXT,
    maxTemperature: 2,
    ...(isOffline ? OFFLINE : SERVER),
    ...free,
  };
  const embedding: ProviderModel = {
    id: served ?? offlineEmbeddingModelId,
    name: served === undefined ? "Switchyard offline embedding (feature hashing, 512)" : `Edge server: ${served}`,
    type: "embedding",
    contextWindow: ASSUMED_CONTEXT,
    maxOutput: 0,
    features: [],
    settings: [],
    ...free,
  };
  return { chat, embedding };
}
