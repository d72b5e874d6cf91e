import { request } from "undici";
import type { Config } from "../../config.ts";
import { AppError } from "../../errors.ts";
import type { KeyProvider } from "../../tenancy/provider-keys.ts";

/** Longest wait for a provider's word on a key, in ms. */
const TIMEOUT_MS = 10_000;

/**
 * Asks a provider whether it takes a key, by listing one model, which costs nothing.
 * OpenAI: https://platform.openai.com/docs/api-reference/models/list; Anthropic: https://docs.anthropic.com/en/api/models-list.
 * @throws AppError `provider_key_refused`, or `provider_failed` when the provider did not say.
 */
export async function verifyProviderKey(
  config: Pick<Config["gateway"], "openai" | "anthropic">,
  provider: KeyProvider,
  apiKey: string,
): Promise<void> {
  const { url, headers } =
    provider === "openai"
      ? { url: `${config.openai.baseUrl}/models`, headers: { authorization: `Bearer ${apiKey}` } }
      : {
          url: `${config.anthropic.baseUrl}/v1/models?limit=1`,
          headers: { "x-api-key": apiKey, "anthropic-version": "2023-06-01" },
        };
  let status: number;
  try {
    const answer = await request(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
    status = answer.statusCode;
    await answer.body.dump();
  } catch {
    // without the cause: it may hold the request, and so the key
    throw new AppError("provider_failed", `${provider} could not be asked about the key.`, { retryable: true });
  }
  if (status >= 200 && status < 300) return;
  if (status === 401 || status === 403) {
    throw new AppError("provider_key_refused", `${provider} refused the key.`, {
      param: "key",
      details: { provider, status },
    });
  }
  throw new AppError("provider_failed", `${provider} could not say whether it takes the key.`, {
    details: { provider, status },
    retryable: true,
  });
}
