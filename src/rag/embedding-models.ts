import { makeStaleWhileRevalidate } from "../stale-while-revalidate.ts";
import type { TenantStore } from "../store/tenant-store.ts";

export type EmbeddingModels = ReturnType<typeof makeEmbeddingModels>;

/** The models by which documents are embedded, as tenants chose them; `platformModel` for those that chose none. */
export function makeEmbeddingModels(
  { store }: { store: { tenants: Pick<TenantStore, "find" | "setEmbeddingModel"> } },
  platformModel: string,
) {
  const cache = makeStaleWhileRevalidate(async (tenantId) => (await store.tenants.find(tenantId))?.embeddingModel);
  return {
    platformModel,
    /** A promise only when it must be read; never older than 4 s. */
    find(tenantId: string): string | Promise<string> {
      const chosen = cache.find(tenantId);
      return chosen instanceof Promise ? chosen.then((model) => model ?? platformModel) : (chosen ?? platformModel);
    },
    /** Sets a tenant's choice; null for the platform's. */
    async set(tenantId: string, model: string | null): Promise<void> {
      await store.tenants.setEmbeddingModel(tenantId, model);
      cache.forget(tenantId);
    },
  };
}
