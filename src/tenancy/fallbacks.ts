import { makeStaleWhileRevalidate } from "../lib/stale-while-revalidate.ts";
import type { ModelFallbacks, TenantStore } from "../store/tenant-store.ts";

/** The models that respond in place of those that fail, as a tenant chose them. */
export type Fallbacks = ReturnType<typeof makeFallbacks>;

export function makeFallbacks(store: Pick<TenantStore, "find" | "setFallbacks">) {
  const cache = makeStaleWhileRevalidate<readonly ModelFallbacks[]>(
    async (tenantId) => (await store.find(tenantId))?.fallbacks ?? [],
  );
  return {
    /** Never older than 4 s. */
    find: async (tenantId: string) => cache.find(tenantId),
    /** Replaces all of a tenant's. */
    async put(tenantId: string, fallbacks: ModelFallbacks[]): Promise<void> {
      await store.setFallbacks(tenantId, fallbacks);
      cache.forget(tenantId);
    },
  };
}
