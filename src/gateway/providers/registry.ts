import { request } from "undici";
import type { Config } from "../../config/config.ts";
import { type KeyProvider, keyProviders, ofKeyProviders } from "../../config/provider-settings.ts";
import { AppError, invalidRequest } from "../../lib/errors.ts";
import type { TransportTimeouts } from "../resilience/transport.ts";
import { providerFault } from "../resilience/transport-errors.ts";
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
type ProviderId = KeyProvider | typeof ownProvider;

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

/** Longest wait for a provider's verdict on a key, in ms. */
const TIMEOUT_MS = 10_000;

/**
 * Asks a provider whether it takes a key, by the request that its registry value names for this.
 * @throws AppError `provider_key_refused`, `provider_failed` when the provider did not say, `invalid_request` when it cannot
 * be asked.
 */
export async function verifyProviderKey(
  config: Pick<Config["gateway"], "providers">,
  provider: KeyProvider,
  apiKey: string,
): Promise<void> {
  const call = keyedProviders[provider].keys.toCheck?.(apiKey);
  if (call === undefined) throw invalidRequest("verify", `verify: ${provider} cannot be asked whether it takes a key.`);
  const url = `${config.providers[provider].baseUrl}${call.path}`;
  let status: number;
  try {
    const response = await request(url, { headers: call.headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
    status = response.statusCode;
    await response.body.dump();
  } catch {
    // without the cause: it may hold the request, and so the key
    throw providerFault(`${provider} could not be asked about the key.`);
  }
  if (status >= 200 && status < 300) return;
  const details = { provider, status };
  if (status === 401 || status === 403)
    throw new AppError("provider_key_refused", `${provider} refused the key.`, { param: "key", details });
  throw providerFault(`${provider} could not say whether it takes the key.`, details);
}
