import type { Db } from "mongodb";
import { defineCollection, ofTenant, type TenantOwned } from "./collection.ts";
import { insertIfAbsent, updateIf } from "./writes.ts";

/** Tokens, and billionths of a US dollar. */
export type RunAmount = { tokens: number; nanoUsd: number };

/** What a model call under way has set aside. After `until` its process is taken to be dead. */
export type RunHold = RunAmount & { until: Date };

/**
 * What a run of an agent had left when it called tools, for all that these start, together: less what was used since, and what is
 * set aside. Below zero when calls used more than they had set aside.
 */
export type RunBudgetRecord = TenantOwned & {
  leftTokens: number;
  leftNanoUsd: number;
  /** By the ids of the calls. */
  holds: Record<string, RunHold>;
  expiresAt: Date;
};

export const runBudgetCollection = defineCollection<RunBudgetRecord>({
  name: "runBudgets",
  indexes: [{ key: { expiresAt: 1 }, name: "expire", expireAfterSeconds: 0 }],
});

/** How long a budget is kept that no end of its run has removed, in ms: a year, in which a run may wait many times. */
const KEPT_MS = 365 * 86_400_000;

export type RunBudgetStore = ReturnType<typeof makeRunBudgetStore>;

export function makeRunBudgetStore(db: Db) {
  const budgets = db.collection<RunBudgetRecord>(runBudgetCollection.name);
  const change = (tenantId: string, filter: object, { tokens, nanoUsd }: RunAmount, more: object = {}) =>
    updateIf(budgets, ofTenant(tenantId, filter), { $inc: { leftTokens: tokens, leftNanoUsd: nanoUsd }, ...more });
  return {
    /** Opens a budget of a run, unless it is there: then it has left what it has. */
    open: (tenantId: string, _id: string, { tokens, nanoUsd }: RunAmount): Promise<boolean> => {
      const expiresAt = new Date(Date.now() + KEPT_MS);
      return insertIfAbsent(budgets, {
        ...{ _id, tenantId, leftTokens: tokens, leftNanoUsd: nanoUsd },
        ...{ holds: {}, expiresAt },
      });
    },
    find: (tenantId: string, _id: string): Promise<RunBudgetRecord | null> =>
      budgets.findOne(ofTenant(tenantId, { _id })),
    /** Sets an amount aside in one step. Returns false if less is left. */
    hold(tenantId: string, _id: string, { id, hold }: { id: string; hold: RunHold }): Promise<boolean> {
      const { tokens, nanoUsd } = hold;
      const isLeft = { leftTokens: { $gte: tokens }, ...(nanoUsd > 0 ? { leftNanoUsd: { $gte: nanoUsd } } : {}) };
      return change(
        tenantId,
        { _id, ...isLeft },
        { tokens: -tokens, nanoUsd: -nanoUsd },
        { $set: { [`holds.${id}`]: hold } },
      );
    },
    /** Says that the call of a hold is still under way. */
    async renew(tenantId: string, _id: string, { id, until }: { id: string; until: Date }): Promise<void> {
      const isThere = { _id, [`holds.${id}`]: { $exists: true } };
      await budgets.updateOne(ofTenant(tenantId, isThere), { $set: { [`holds.${id}.until`]: until } });
    },
    /** Puts what a call has used in the place of what it had set aside. Returns false if that was given back before. */
    settle(
      tenantId: string,
      _id: string,
      { id, hold, used }: { id: string; hold: RunAmount; used: RunAmount },
    ): Promise<boolean> {
      const back = { tokens: hold.tokens - used.tokens, nanoUsd: hold.nanoUsd - used.nanoUsd };
      const place = `holds.${id}`;
      return change(tenantId, { _id, [place]: { $exists: true } }, back, { $unset: { [place]: "" } });
    },
    /** Counts what a call has used whose hold was given back. */
    spend: (tenantId: string, _id: string, { tokens, nanoUsd }: RunAmount): Promise<boolean> =>
      change(tenantId, { _id }, { tokens: -tokens, nanoUsd: -nanoUsd }),
    /** Removes the budgets of a run, which has ended. */
    async remove(tenantId: string, runId: string): Promise<void> {
      await budgets.deleteMany(ofTenant(tenantId, { _id: { $gt: `${runId}:`, $lt: `${runId};` } })); // ; comes after :
    },
  };
}
