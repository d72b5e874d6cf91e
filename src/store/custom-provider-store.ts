import { Binary, type Db } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { findFirst } from "./page.ts";
import type { SealedKey } from "./provider-key-store.ts";
import { makeRecords } from "./records.ts";
import { changeOne } from "./writes.ts";

/** A model of a custom provider, as its tenant describes it. Prices are in USD for a million tokens. */
export type CustomModelRecord = {
  /** As the provider names it. */
  id: string;
  name?: string;
  type: "chat" | "coding" | "reasoning" | "embedding" | "rerank";
  /** Tokens of prompt and answer together. */
  contextWindow: number;
  /** Tokens of the longest answer. */
  maxOutput?: number;
  inputUsdPerMTok: number;
  outputUsdPerMTok: number;
  cachedInputUsdPerMTok?: number;
  cacheWriteUsdPerMTok?: number;
  supportedFeatures?: string[];
  reasoningEfforts?: string[];
};

/** What a tenant says of a provider of its own; `wire` is the format that the server speaks. */
type CustomProviderSettings = { baseUrl: string; wire: string; models: CustomModelRecord[] };

/** A provider of one tenant's own, its key encrypted under the tenant's data key. */
export type CustomProviderRecord = TenantOwned &
  CustomProviderSettings & {
    name: string;
    /** Nonce, tag and ciphertext. */
    sealed: Binary;
    /** As `sk-a…wxyz`. */
    preview: string;
    createdAt: Date;
    updatedAt: Date;
  };

export const customProviderCollection = defineCollection<CustomProviderRecord>({
  name: "customProviders",
  indexes: [{ name: "tenant", key: { tenantId: 1, name: 1 }, unique: true }],
});

export type CustomProviderStore = ReturnType<typeof makeCustomProviderStore>;

export const customProviderId = (tenantId: string, name: string) => `${tenantId}:${name}`;

export function makeCustomProviderStore(db: Db) {
  const providers = db.collection<CustomProviderRecord>(customProviderCollection.name);
  const { get, count, remove } = makeRecords(providers);
  return {
    count,
    find: (tenantId: string, name: string) => get(tenantId, customProviderId(tenantId, name)),
    /** The first `limit` providers of a tenant, by name. */
    list: (tenantId: string, limit: number) => findFirst(providers, ofTenant(tenantId), { by: "name", limit }),
    /** Replaces the provider of this name. Returns null if there is none. */
    replace(tenantId: string, name: string, { at, sealed, ...given }: CustomProviderSettings & SealedKey) {
      const $set = { ...given, sealed: new Binary(sealed), updatedAt: at };
      return changeOne(providers, ofTenant(tenantId, { _id: customProviderId(tenantId, name) }), { $set });
    },
    /** @throws the driver's error 11000 if a provider of this name exists. */
    async insert(tenantId: string, name: string, { at, sealed, ...given }: CustomProviderSettings & SealedKey) {
      const id = { _id: customProviderId(tenantId, name), tenantId, name };
      const made = { ...id, ...given, sealed: new Binary(sealed), createdAt: at, updatedAt: at };
      await providers.insertOne(made);
      return made;
    },
    /** Returns false if there was none. */
    remove: (tenantId: string, name: string) => remove(tenantId, customProviderId(tenantId, name)),
  };
}
