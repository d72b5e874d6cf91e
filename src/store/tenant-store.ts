import type { Db } from "mongodb";
import { defineCollection } from "./collection.ts";
import { insertOrFind } from "./writes.ts";

/** A model, and those that answer in its place when it fails, in order. */
export type ModelFallbacks = { model: string; models: string[] };

export type TenantRecord = {
  _id: string;
  name: string;
  createdAt: Date;
  /** What its model calls may cost in a month, in billionths of a US dollar; absent: any amount. */
  monthlyBudgetNanoUsd?: number;
  fallbacks?: ModelFallbacks[];
};

export const tenantCollection = defineCollection<TenantRecord>({
  name: "tenants",
  indexes: [{ name: "name", key: { name: 1 }, unique: true }],
});

export type TenantStore = {
  find(tenantId: string): Promise<TenantRecord | null>;
  /** @throws the driver's error 11000 when a tenant of this id or name is there. */
  insert(tenant: TenantRecord): Promise<void>;
  findByName(name: string): Promise<TenantRecord | null>;
  /** Adds the tenant unless one of its name is there; answers the one that is there then. */
  ensure(tenant: TenantRecord): Promise<TenantRecord>;
  setFallbacks(tenantId: string, fallbacks: ModelFallbacks[]): Promise<void>;
  /** Sets the budget a month, or removes it. */
  setBudget(tenantId: string, nanoUsd: number | null): Promise<void>;
};

export function makeTenantStore(db: Db): TenantStore {
  const tenants = db.collection<TenantRecord>(tenantCollection.name);
  return {
    find: (tenantId) => tenants.findOne({ _id: tenantId }),
    insert: async (tenant) => void (await tenants.insertOne(tenant)),
    findByName: (name) => tenants.findOne({ name }),
    async setBudget(tenantId, nanoUsd) {
      const update =
        nanoUsd === null
          ? { $unset: { monthlyBudgetNanoUsd: true as const } }
          : { $set: { monthlyBudgetNanoUsd: nanoUsd } };
      await tenants.updateOne({ _id: tenantId }, update);
    },
    async ensure(tenant) {
      const { name } = tenant;
      return (await tenants.findOne({ name })) ?? insertOrFind(tenants, tenant, { name });
    },
    async setFallbacks(tenantId, fallbacks) {
      await tenants.updateOne({ _id: tenantId }, { $set: { fallbacks } });
    },
  };
}
