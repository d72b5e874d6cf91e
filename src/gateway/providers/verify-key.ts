import { request } from "undici";
import type { Config } from "../../config/config.ts";
import type { KeyProvider } from "../../config/provider-settings.ts";
import { AppError, invalidRequest } from "../../lib/errors.ts";
import { providerFault } from "../resilience/transport-errors.ts";
import { keyedProviders } from "./registry.ts";

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
