import { makeFreshCache } from "../fresh-cache.ts";
import type { ModelFallbacks, TenantStore } from "../store/tenant-store.ts";

/** What a tenant wants to be asked in the place of models that fail. */
export type Fallbacks = {
  /** A promise only when it has to be read; never older than 4 s. */
  find(tenantId: string): readonly ModelFallbacks[] | Promise<readonly ModelFallbacks[]>;
  /** Replaces all of a tenant's. */
  put(tenantId: string, fallbacks: ModelFallbacks[]): Promise<void>;
};

export function makeFallbacks(store: Pick<TenantStore, "find" | "setFallbacks">): Fallbacks {
  const cache = makeFreshCache<readonly ModelFallbacks[]>(
    async (tenantId) => (await store.find(tenantId))?.fallbacks ?? [],
  );
  return {
    find: cache.find,
    async put(tenantId, fallbacks) {
      await store.setFallbacks(tenantId, fallbacks);
      cache.forget(tenantId);
    },
  };
}
