import type { Db } from "mongodb";
import { defineCollection } from "./collection.ts";
import type { Page, PageQuery } from "./page.ts";
import { insertOrFind } from "./writes.ts";

/** A model, and those that answer in its place when it fails, in order. */
export type ModelFallbacks = { model: string; models: string[] };

export type TenantRecord = {
  _id: string;
  name: string;
  createdAt: Date;
  /** The tenant that created this one; its limits and budget hold for both. Absent if the operator created it. */
  rootTenantId?: string;
  /** Monthly budget of its model calls, in billionths of a US dollar; absent: unlimited. */
  monthlyBudgetNanoUsd?: number;
  /** The limit that its owners set for themselves; the lower one of the two holds. */
  ownBudgetNanoUsd?: number;
  fallbacks?: ModelFallbacks[];
  /** Model that embeds its documents from now on; absent: the platform's. */
  embeddingModel?: string;
  /** What is done with identifiers in its texts; `tenancy/guard-schemas.ts` reads it. */
  guards?: object;
  /** Days that the texts of its model calls are kept; 0: not at all; absent: the operator's choice. */
  callTextDays?: number;
};

/** Who set a budget: the operator, or the tenant. */
type BudgetField = "monthlyBudgetNanoUsd" | "ownBudgetNanoUsd";

export const tenantCollection = defineCollection<TenantRecord>({
  name: "tenants",
  indexes: [
    { name: "name", key: { name: 1 }, unique: true },
    { name: "root", key: { rootTenantId: 1 } },
  ],
});

export type TenantStore = ReturnType<typeof makeTenantStore>;

export function makeTenantStore(db: Db) {
  const tenants = db.collection<TenantRecord>(tenantCollection.name);
  return {
    find: (tenantId: string): Promise<TenantRecord | null> => tenants.findOne({ _id: tenantId }),
    findByName: (name: string): Promise<TenantRecord | null> => tenants.findOne({ name }),
    /** All tenants, the newest first; for the operator. */
    async list({ limit, cursor }: PageQuery): Promise<Page<TenantRecord>> {
      const filter = cursor === undefined ? {} : { _id: { $lt: cursor } };
      const found = await tenants
        .find(filter)
        .sort({ _id: -1 })
        .limit(limit + 1)
        .toArray();
      const data = found.slice(0, limit);
      return { data, nextCursor: found.length > limit ? (data.at(-1)?._id ?? null) : null };
    },
    /** The ids of the tenants that one has made; `organizations.ts` bounds their number. */
    madeBy: (rootTenantId: string): Promise<string[]> =>
      tenants
        .find({ rootTenantId }, { projection: { _id: 1 } })
        .map(({ _id }) => _id)
        .toArray(),
    /** @throws the driver's error 11000 if a tenant with this id or name exists. */
    async insert(tenant: TenantRecord): Promise<void> {
      await tenants.insertOne(tenant);
    },
    /** Adds the tenant unless one with its name exists. Returns the stored one. */
    ensure: (tenant: TenantRecord): Promise<TenantRecord> => insertOrFind(tenants, tenant, { name: tenant.name }),
    async setFallbacks(tenantId: string, fallbacks: ModelFallbacks[]): Promise<void> {
      await tenants.updateOne({ _id: tenantId }, { $set: { fallbacks } });
    },
    /** Sets the model by which its documents are embedded; null for the platform's. */
    async setEmbeddingModel(tenantId: string, embeddingModel: string | null): Promise<void> {
      const update =
        embeddingModel === null ? { $unset: { embeddingModel: "" as const } } : { $set: { embeddingModel } };
      await tenants.updateOne({ _id: tenantId }, update);
    },
    async setCallTextDays(tenantId: string, callTextDays: number): Promise<void> {
      await tenants.updateOne({ _id: tenantId }, { $set: { callTextDays } });
    },
    async setGuards(tenantId: string, guards: object): Promise<void> {
      await tenants.updateOne({ _id: tenantId }, { $set: { guards } });
    },
    /** How long tenants keep the texts of calls, for tenants after an id, in the order of ids. */
    callTextDaysAfter: (tenantId: string, limit: number) =>
      tenants
        .find({ _id: { $gt: tenantId } }, { projection: { callTextDays: 1 } })
        .sort({ _id: 1 })
        .limit(limit)
        .map(({ _id, callTextDays }) => ({ tenantId: _id, callTextDays }))
        .toArray(),
    /** Sets the operator's budget a month, or the tenant's own, or removes it. */
    async setBudget(tenantId: string, nanoUsd: number | null, field: BudgetField = "monthlyBudgetNanoUsd") {
      const update = nanoUsd === null ? { $unset: { [field]: "" as const } } : { $set: { [field]: nanoUsd } };
      await tenants.updateOne({ _id: tenantId }, update);
    },
  };
}
