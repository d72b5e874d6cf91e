import type { KeyProvider } from "../config/provider-settings.ts";
import { AppError, notFound } from "../lib/errors.ts";
import { makeStaleWhileRevalidate } from "../lib/stale-while-revalidate.ts";
import type { Logger } from "../observe/logger.ts";
import { bytesOf, type ProviderKeyRecord, type ProviderKeyStore } from "../store/provider-key-store.ts";
import type { DataKeys } from "./data-keys.ts";
import { open, seal } from "./envelope.ts";

/**
 * A key for calls to a provider. `keyId` is its place (a tenant's key for a provider, or the platform's) and never holds a
 * part of the key; `revision` is another one when the key in that place is replaced.
 */
export type ProviderKey = { keyId: string; apiKey: string; source: "tenant" | "platform"; revision?: number };

export type ProviderKeys = ReturnType<typeof makeProviderKeys>;

type ProviderKeysDeps = {
  store: ProviderKeyStore;
  dataKeys: DataKeys;
  /** The platform's own keys, which serve every tenant that has none, of each provider that takes customers' keys. */
  platform: { providers: Record<KeyProvider, { apiKey: string | undefined }> };
  logger: Logger;
};

/**
 * Customers' keys by envelope encryption: AES-256-GCM under the tenant's data key, which a master key wraps. The plain key
 * lives in memory only. What a key is bound to (tenant and provider) is in its additional data, so that stored bytes
 * moved to another place do not open.
 */
export function makeProviderKeys(deps: ProviderKeysDeps) {
  const { store, dataKeys, logger } = deps;
  const keyProviders = Object.keys(deps.platform.providers) as KeyProvider[]; // a record that has each of them, and nothing else
  const decrypt = async (record: ProviderKeyRecord): Promise<ProviderKey | null> => {
    const dataKey = await dataKeys.find(record.tenantId);
    const plain = dataKey && open(dataKey, bytesOf(record.sealed), contextOf(record.tenantId, record.provider));
    const revision = record.updatedAt.getTime();
    return plain && { keyId: record._id, apiKey: plain.toString("utf8"), source: "tenant", revision };
  };
  const read = async (tenantId: string, provider: KeyProvider): Promise<ProviderKey | undefined> => {
    const record = await store.find(tenantId, provider);
    if (record === null) return toPlatformKey(deps.platform, provider);
    const key = await decrypt(record);
    if (key !== null) return key;
    logger.error({ tenantId, provider }, "a customer's key cannot be decrypted: is the master key the right one?");
    const message = `The key that you set for ${provider} cannot be read; set it again.`;
    throw new AppError("provider_key_unreadable", message, { details: { provider } });
  };
  const cacheOf = (provider: KeyProvider) => makeStaleWhileRevalidate((tenantId) => read(tenantId, provider));
  const caches = new Map<string, ReturnType<typeof cacheOf>>(
    keyProviders.map((provider) => [provider, cacheOf(provider)]),
  );
  const sealFor = async (tenantId: string, provider: KeyProvider, apiKey: string) => ({
    sealed: seal(await dataKeys.ensure(tenantId), Buffer.from(apiKey, "utf8"), contextOf(tenantId, provider)),
    preview: `${apiKey.slice(0, 4)}…${apiKey.slice(-4)}`,
    at: new Date(),
  });
  const changed = (tenantId: string, provider: KeyProvider, what: string) => {
    caches.get(provider)?.forget(tenantId);
    logger.info({ tenantId, provider }, `a customer's key was ${what}`);
  };
  return {
    /**
     * The key that a call of this tenant uses: the tenant's own, else the platform's; undefined when there is none. Kept in
     * memory for a few seconds; a change is seen everywhere within 5 s.
     * @throws AppError `provider_key_unreadable`: no other key ever replaces one that cannot be read.
     */
    find: async (tenantId: string, provider: string) => caches.get(provider)?.find(tenantId),
    /** A key by its id, for a batch that was submitted with it. */
    async byId(tenantId: string, keyId: string): Promise<ProviderKey | undefined> {
      const provider = keyProviders.find((one) => keyId === platformKeyId(one) || keyId === `${tenantId}:${one}`);
      if (provider === undefined) return undefined;
      if (keyId === platformKeyId(provider)) return toPlatformKey(deps.platform, provider);
      const key = await caches.get(provider)?.find(tenantId);
      return key?.keyId === keyId ? key : undefined;
    },
    /** What tenants see of their keys: never the keys. `decryptable`: with the master keys of this process. */
    async list(tenantId: string) {
      const records = await store.list(tenantId);
      return Promise.all(
        keyProviders.map(async (provider) => {
          const record = records.find((one) => one.provider === provider);
          const decryptable = record && (await decrypt(record)) !== null;
          const { preview: keyPreview, updatedAt } = record ?? {};
          return { provider, configured: record !== undefined, keyPreview, updatedAt, decryptable };
        }),
      );
    },
    /** Sets a tenant's key. @throws AppError `unavailable` where no master key is set. */
    async put(tenantId: string, provider: KeyProvider, apiKey: string): Promise<void> {
      await store.put(tenantId, provider, await sealFor(tenantId, provider, apiKey));
      changed(tenantId, provider, "set");
    },
    /** Replaces a tenant's key under the same data key; returns when. @throws AppError `not_found`. */
    async rotate(tenantId: string, provider: KeyProvider, apiKey: string): Promise<Date> {
      if ((await store.find(tenantId, provider)) === null) throw notFound("provider key");
      const sealed = await sealFor(tenantId, provider, apiKey);
      if (!(await store.replace(tenantId, provider, sealed))) throw notFound("provider key");
      changed(tenantId, provider, "rotated");
      return sealed.at;
    },
    /** @throws AppError `not_found`. */
    async remove(tenantId: string, provider: KeyProvider): Promise<void> {
      if (!(await store.remove(tenantId, provider))) throw notFound("provider key");
      changed(tenantId, provider, "removed");
    },
    rewrapAll: dataKeys.rewrapAll,
  };
}

const contextOf = (tenantId: string, provider: string) => `provider-key:${tenantId}:${provider}`;
const platformKeyId = (provider: KeyProvider) => `platform-${provider}`;

function toPlatformKey(platform: ProviderKeysDeps["platform"], provider: KeyProvider): ProviderKey | undefined {
  const { apiKey } = platform.providers[provider];
  return apiKey === undefined ? undefined : { keyId: platformKeyId(provider), apiKey, source: "platform" };
}
