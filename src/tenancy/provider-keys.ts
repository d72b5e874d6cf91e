/** The providers that take customers' keys. */
export type KeyProvider = "openai" | "anthropic";

/** A key for calls to a provider. `keyId` tells keys apart (for breakers and batches) and never holds a part of the key. */
export type ProviderKey = { keyId: string; apiKey: string; source: "tenant" | "platform" };

export type ProviderKeys = {
  /**
   * The key that a call of this tenant uses: the tenant's own, else the platform's; undefined when there is none. Kept in
   * memory for a few seconds, so mostly no promise.
   */
  find(tenantId: string, provider: KeyProvider): ProviderKey | undefined | Promise<ProviderKey | undefined>;
  /** A key by its id, for a batch that was submitted with it. */
  byId(tenantId: string, keyId: string): Promise<ProviderKey | undefined>;
};

/** The keys of the settings, which serve every tenant that has none of its own. */
export function makePlatformKeys(settings: Record<KeyProvider, { apiKey: string | undefined }>): ProviderKeys {
  const toKey = (provider: KeyProvider): ProviderKey | undefined => {
    const { apiKey } = settings[provider];
    return apiKey === undefined ? undefined : { keyId: `platform-${provider}`, apiKey, source: "platform" };
  };
  const keys = { openai: toKey("openai"), anthropic: toKey("anthropic") };
  return {
    find: (_tenantId, provider) => keys[provider],
    byId: async (_tenantId, keyId) => Object.values(keys).find((key) => key?.keyId === keyId),
  };
}
