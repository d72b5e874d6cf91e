import type { Config } from "../config.ts";
import { AppError } from "../errors.ts";
import type { Store } from "../store/store.ts";

/** What a tenant may keep a limited number of. */
export const quotaNames = ["agents", "workflows"] as const;
export type QuotaName = (typeof quotaNames)[number];

type Quota = {
  limit: number;
  /** The setting that the limit comes from. */
  setting: string;
  /** How many the tenant keeps; counts no further than `limit`. */
  count(tenantId: string, limit: number): Promise<number>;
};

export type Quotas = {
  /**
   * Allows one more. Several calls at the same time may all be allowed, so a tenant can come to have a few too many.
   * @throws AppError `quota_exceeded` when the tenant keeps as many as it may.
   */
  check(tenantId: string, name: QuotaName): Promise<void>;
  /** Each quota with its use, which is counted up to the limit. */
  usage(tenantId: string): Promise<Record<QuotaName, { used: number; limit: number }>>;
};

/** The quotas of every tenant. */
export function makeQuotas({
  store,
  limits,
}: {
  store: Pick<Store, "agents" | "workflows">;
  limits: Config["quotas"];
}): Quotas {
  const quotas: Record<QuotaName, Quota> = {
    agents: { limit: limits.agents, setting: "MAX_AGENTS", count: store.agents.count },
    workflows: { limit: limits.workflows, setting: "MAX_WORKFLOWS", count: store.workflows.count },
  };
  const usageOf = async (tenantId: string, name: QuotaName) => {
    const { limit, count } = quotas[name];
    return { used: await count(tenantId, limit), limit };
  };
  return {
    async check(tenantId, name) {
      const { used, limit } = await usageOf(tenantId, name);
      if (used < limit) return;
      const message = `The tenant has ${used} ${name}; its quota is ${limit} (${quotas[name].setting}). Delete some first.`;
      throw new AppError("quota_exceeded", message, { details: { quota: name, limit } });
    },
    async usage(tenantId) {
      const [agents, workflows] = await Promise.all([usageOf(tenantId, "agents"), usageOf(tenantId, "workflows")]);
      return { agents, workflows };
    },
  };
}
