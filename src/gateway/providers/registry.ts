import type { TransportTimeouts } from "../resilience/transport.ts";
import { anthropic } from "./anthropic/provider.ts";
import { openEdge } from "./edge/edge.ts";
import type { EdgeSettings } from "./edge/models.ts";
import { openAi } from "./openai/openai.ts";
import type { KeyedProvider, Provider } from "./provider.ts";

/** The providers that take customers' keys, by id. A new one is added here and nowhere else. */
const keyed = { openai: openAi, anthropic } as const satisfies Record<string, KeyedProvider>;
/** The platform's own provider, which takes no keys. */
export const ownProvider = "edge";

export type KeyProvider = keyof typeof keyed;
/** Whose API `/v1/messages` is: the blocks of thinking that its clients send back unmarked are its own. */
export const messagesProvider: KeyProvider = "anthropic";
/** Who serves a model. */
export type ProviderId = KeyProvider | typeof ownProvider;

export const keyedProviders: Readonly<Record<KeyProvider, KeyedProvider>> = keyed;
export const keyProviders = Object.keys(keyed) as KeyProvider[]; // the literal above has no other keys
export const providerIds: readonly ProviderId[] = [...keyProviders, ownProvider];
const known: ReadonlySet<string> = new Set(providerIds);
/** Whether a provider is a tenant's own, and none of the platform's. */
export const isCustom = (provider: string) => !known.has(provider);

/** A record with what `make` gives for each provider that takes customers' keys. */
export function ofKeyProviders<T>(make: (id: KeyProvider, provider: KeyedProvider) => T): Record<KeyProvider, T> {
  // `fromEntries` forgets which keys there are.
  return Object.fromEntries(keyProviders.map((id) => [id, make(id, keyed[id])])) as Record<KeyProvider, T>;
}

/** Opens every provider at the addresses of the settings. */
export function openProviders(settings: {
  providers: Record<KeyProvider, { baseUrl: string }>;
  edge: EdgeSettings;
  timeouts: TransportTimeouts;
}): ReadonlyMap<string, Provider> {
  const { providers, timeouts } = settings;
  const opened = ofKeyProviders((id, { open }) => open({ baseUrl: providers[id].baseUrl, timeouts }));
  return new Map<string, Provider>([...Object.entries(opened), [ownProvider, openEdge(settings)]]);
}
