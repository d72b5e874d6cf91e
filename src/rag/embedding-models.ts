import { makeStaleWhileRevalidate } from "../lib/stale-while-revalidate.ts";
import type { TenantStore } from "../store/tenant-store.ts";

export type EmbeddingModels = ReturnType<typeof makeEmbeddingModels>;

/** The models by which documents are embedded, as tenants chose them; `platformModel` for those that chose none. */
export function makeEmbeddingModels(
  { store }: { store: { tenants: Pick<TenantStore, "find" | "setEmbeddingModel"> } },
  platformModel: string,
) {
  const read = async (tenantId: string) => (await store.tenants.find(tenantId))?.embeddingModel ?? platformModel;
  const cache = makeStaleWhileRevalidate(read);
  return {
    platformModel,
    /** As it is stored now. */
    read,
    /** Never older than 4 s. */
    find: async (tenantId: string) => cache.find(tenantId),
    /** Sets a tenant's choice; null for the platform's. */
    async set(tenantId: string, model: string | null): Promise<void> {
      await store.tenants.setEmbeddingModel(tenantId, model);
      cache.forget(tenantId);
    },
  };
}
