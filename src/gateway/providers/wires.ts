import type { Connection } from "../resilience/transport.ts";
import { openMessages } from "./anthropic/provider.ts";
import { efforts, type Feature, type ProviderModel, wordSettings } from "./model.ts";
import { makeResponsesProvider } from "./openai-responses/provider.ts";
import { makeWireProvider } from "./openai-wire/provider.ts";
import type { Provider } from "./provider.ts";

/** A wire format that custom providers may speak. */
type Wire = {
  open(connection: Connection): Provider;
  /** It has models that embed, and models that rerank. */
  hasEmbeddings: boolean;
  /** What it has no form for, so that no model can have it. */
  lacks?: readonly Feature[];
  /** What its servers commonly take of a model that chats. One that does not take a part of it rejects the call. */
  models: Pick<ProviderModel, "features" | "efforts" | "settings" | "maxTemperature">;
};

/** The wire formats of custom providers, by name. A new one is added here and nowhere else. */
const all = {
  "openai-chat": {
    open: (connection) =>
      makeWireProvider({
        ...connection,
        apiKey: undefined,
        dialect: { maxTokensField: "max_tokens", hasReasoningDetails: true },
      }),
    hasEmbeddings: true,
    models: {
      features: ["streaming", "tool_use", "tool_choice", "vision", "json_schema", "json_object"],
      efforts,
      settings: ["seed", "parallelToolCalls", "user", ...wordSettings],
      maxTemperature: 2,
    },
  },
  "openai-responses": {
    open: makeResponsesProvider,
    hasEmbeddings: false,
    // Servers reject the efforts of a model that does not reason, so each model names its own.
    models: {
      features: [
        "streaming",
        "tool_use",
        "tool_choice",
        "vision",
        "files",
        "json_schema",
        "json_object",
        "prompt_caching",
      ],
      settings: [
        "verbosity",
        "parallelToolCalls",
        "metadata",
        "user",
        "safetyIdentifier",
        "serviceTier",
        "promptCacheKey",
      ],
      maxTemperature: 2,
    },
  },
  "anthropic-messages": {
    open: openMessages,
    hasEmbeddings: false,
    lacks: ["json_object"],
    models: {
      features: ["streaming", "tool_use", "tool_choice", "vision", "files", "json_schema", "prompt_caching"],
      efforts: ["low", "medium", "high", "xhigh", "max"],
      settings: ["parallelToolCalls", "user", "safetyIdentifier", "promptCacheKey"],
      maxTemperature: 1,
    },
  },
} as const satisfies Record<string, Wire>;

export type WireName = keyof typeof all;
export const wires: Readonly<Record<WireName, Wire>> = all;
export const wireNames = Object.keys(all) as [WireName, ...WireName[]]; // the literal above has no other keys
