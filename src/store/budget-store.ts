import type { Db } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { insertIfAbsent, updateIf } from "./writes.ts";

/**
 * What a tenant, or one of its keys, has left of its budget in one month (UTC), in billionths of a US dollar. `month` is
 * `YYYY-MM`, and for a key `YYYY-MM:<keyId>`.
 */
export type BudgetRecord = TenantOwned & {
  month: string;
  limitNanoUsd: number;
  /** The limit less what is spent and what is reserved. Below zero when calls cost more than was reserved for them. */
  leftNanoUsd: number;
  /** Amount reserved for calls under way. Reservations of a process that died stay in it. */
  reservedNanoUsd?: number;
  /** Until when a call holds the rest of the month: less than it may cost. There is one such call at a time. */
  restHeldUntil?: Date;
  /** The number of the last settlement of each process that has settled calls. */
  settled?: Record<string, number>;
  /** Set for a key, whose month is of no use once it is over. */
  expiresAt?: Date;
};

export const budgetCollection = defineCollection<BudgetRecord>({
  name: "budgets",
  indexes: [
    { name: "tenant", key: { tenantId: 1, month: 1 }, unique: true },
    { name: "expiry", key: { expiresAt: 1 }, expireAfterSeconds: 0 },
  ],
});

/** What is set aside of a budget, as it is stored with its call: a tenant's, or that of the key `keyId`. `isRest`: it is less than the call may cost. */
export type ReservedAmount = { tenantId: string; month: string; keyId?: string; nanoUsd: number; isRest?: boolean };

/** `writer`: the process, which numbers its settlements, each higher than the one before. */
export type BudgetSettling = {
  takenNanoUsd: number;
  costNanoUsd: number;
  isRest: boolean;
  writer: string;
  number: number;
};

export type BudgetStore = ReturnType<typeof makeBudgetStore>;

export function makeBudgetStore(db: Db) {
  const budgets = db.collection<BudgetRecord>(budgetCollection.name);
  const idOf = (tenantId: string, month: string) => `${tenantId}:${month}`;
  return {
    find: (tenantId: string, month: string): Promise<BudgetRecord | null> =>
      budgets.findOne(ofTenant(tenantId, { _id: idOf(tenantId, month) })),
    /** Starts a month. Returns false if another process has started it. */
    begin: (
      tenantId: string,
      month: string,
      budget: Pick<BudgetRecord, "limitNanoUsd" | "leftNanoUsd" | "expiresAt">,
    ) => insertIfAbsent(budgets, { _id: idOf(tenantId, month), tenantId, month, ...budget }),
    /**
     * Takes an amount in one step. Returns false if less is left. With `restUntil` it takes the rest of the month, and returns
     * false also while another call holds that.
     */
    take(tenantId: string, month: string, { nanoUsd, restUntil }: { nanoUsd: number; restUntil?: Date }) {
      const filter = { _id: idOf(tenantId, month), leftNanoUsd: { $gte: nanoUsd } };
      const $inc = { leftNanoUsd: -nanoUsd, reservedNanoUsd: nanoUsd };
      if (restUntil === undefined) return updateIf(budgets, ofTenant(tenantId, filter), { $inc });
      const $or = [{ restHeldUntil: { $exists: false } }, { restHeldUntil: { $lt: new Date() } }];
      return updateIf(budgets, ofTenant(tenantId, { ...filter, $or }), { $inc, $set: { restHeldUntil: restUntil } });
    },
    /** Replaces reservations of calls by their real cost, once however often it is written before the next one of its writer. */
    async settle(
      tenantId: string,
      month: string,
      { takenNanoUsd, costNanoUsd, isRest, writer, number }: BudgetSettling,
    ): Promise<void> {
      const field = `settled.${writer}`;
      await budgets.updateOne(ofTenant(tenantId, { _id: idOf(tenantId, month), [field]: { $not: { $gte: number } } }), {
        $inc: { leftNanoUsd: takenNanoUsd - costNanoUsd, reservedNanoUsd: -takenNanoUsd },
        $set: { [field]: number },
        ...(isRest ? { $unset: { restHeldUntil: "" } } : {}),
      });
    },
    /** Moves the month to another limit, once, even if several processes try. */
    async moveLimit({ _id, tenantId, limitNanoUsd: from }: BudgetRecord, to: number): Promise<void> {
      await budgets.updateOne(ofTenant(tenantId, { _id, limitNanoUsd: from }), {
        $set: { limitNanoUsd: to },
        $inc: { leftNanoUsd: to - from },
      });
    },
  };
}
