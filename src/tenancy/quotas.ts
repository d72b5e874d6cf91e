import type { Config } from "../config.ts";
import { AppError } from "../errors.ts";
import type { Store } from "../store/store.ts";

/** What a tenant may keep a limited number of. */
export const quotaNames = ["agents", "workflows"] as const;
export type QuotaName = (typeof quotaNames)[number];

export type Quotas = ReturnType<typeof makeQuotas>;

/** The quotas of every tenant. */
export function makeQuotas({ store, limits }: { store: Pick<Store, QuotaName>; limits: Config["quotas"] }) {
  const settings: Record<QuotaName, string> = { agents: "MAX_AGENTS", workflows: "MAX_WORKFLOWS" };
  const usageOf = async (tenantId: string, name: QuotaName) => {
    const limit = limits[name];
    return { used: await store[name].count(tenantId, limit), limit };
  };
  return {
    /** Several calls at once may all be allowed, a few too many. @throws AppError `quota_exceeded` at the limit. */
    async check(tenantId: string, name: QuotaName): Promise<void> {
      const { used, limit } = await usageOf(tenantId, name);
      if (used < limit) return;
      const message = `The tenant has ${used} ${name}; its quota is ${limit} (${settings[name]}). Delete some first.`;
      throw new AppError("quota_exceeded", message, { details: { quota: name, limit } });
    },
    /** Each quota with its use, which is counted up to the limit. */
    async usage(tenantId: string): Promise<Record<QuotaName, { used: number; limit: number }>> {
      const [agents, workflows] = await Promise.all([usageOf(tenantId, "agents"), usageOf(tenantId, "workflows")]);
      return { agents, workflows };
    },
  };
}
