import { type KeyProvider, keyProviders, ofKeyProviders } from "../../config/provider-settings.ts";
import type { TransportTimeouts } from "../resilience/transport.ts";
import { anthropic } from "./anthropic/provider.ts";
import { openEdge } from "./edge/edge.ts";
import type { EdgeSettings } from "./edge/models.ts";
import { openAi } from "./openai/openai.ts";
import type { KeyedProvider, Provider } from "./provider.ts";

/** How the providers that take customers' keys are asked, by id. */
export const keyedProviders: Readonly<Record<KeyProvider, KeyedProvider>> = { openai: openAi, anthropic };
/** The platform's own provider, which takes no keys. */
export const ownProvider = "edge";

/** Whose API `/v1/messages` is: the blocks of thinking that its clients send back unmarked are its own. */
export const messagesProvider: KeyProvider = "anthropic";
/** Who serves a model. */
export type ProviderId = KeyProvider | typeof ownProvider;

export const providerIds: readonly ProviderId[] = [...keyProviders, ownProvider];
const known: ReadonlySet<string> = new Set(providerIds);
/** Whether a provider is a tenant's own, and none of the platform's. */
export const isCustom = (provider: string) => !known.has(provider);

/** Opens every provider at the addresses of the settings. */
export function openProviders(settings: {
  providers: Record<KeyProvider, { baseUrl: string }>;
  edge: EdgeSettings;
  timeouts: TransportTimeouts;
}): ReadonlyMap<string, Provider> {
  const { providers, timeouts } = settings;
  const opened = ofKeyProviders((id) => keyedProviders[id].open({ baseUrl: providers[id].baseUrl, timeouts }));
  return new Map<string, Provider>([...Object.entries(opened), [ownProvider, openEdge(settings)]]);
}
