import { setTimeout as delay } from "node:timers/promises";
import { AppError } from "../errors.ts";
import { makeFreshCache } from "../fresh-cache.ts";
import { jittered } from "../jitter.ts";
import type { Logger } from "../logger.ts";
import type { BudgetStore } from "../store/budget-store.ts";
import type { TenantStore } from "../store/tenant-store.ts";
import type { UsageStore } from "../store/usage-store.ts";
import { toUsd } from "./catalogue.ts";

/** An amount that is set aside for a call. */
export type Reservation = {
  /** Puts what the call really cost in the place of what was set aside. Nobody waits for it. */
  settle(costNanoUsd: number): void;
};

/** An amount that is set aside, as it is stored with its call. */
export type ReservedAmount = { month: string; nanoUsd: number };

export type BudgetView = { month: string; limitUsd: number; leftUsd: number };

export type Budgets = {
  /**
   * Sets an amount aside before a call. Answers at once, with nothing, for a tenant without a budget and for a call that
   * costs nothing; only others wait for the store.
   * @throws AppError `budget_exhausted` when less than that is left.
   */
  reserve(tenantId: string, nanoUsd: () => number): Reservation | undefined | Promise<Reservation | undefined>;
  /** The same for a call whose end another process may settle, with `settleLater`. */
  reserveForLater(tenantId: string, nanoUsd: () => number): Promise<ReservedAmount | undefined>;
  settleLater(tenantId: string, reserved: ReservedAmount, costNanoUsd: number): Promise<void>;
  view(tenantId: string): Promise<BudgetView | null>;
  /** Sets a tenant's budget a month, in USD; null for none. It holds everywhere within 5 s. */
  set(tenantId: string, usd: number | null): Promise<void>;
  /** Resolves when all that was settled is written, or given up. */
  flush(): Promise<void>;
};

type BudgetDeps = {
  store: { budgets: BudgetStore; tenants: TenantStore; usage: UsageStore };
  logger: Logger;
  /** Is told of each call that there is no room for. */
  onRefusal(): void;
};

/** A settlement that the store does not take is tried so often; then the amount stays set aside until the month ends. */
const SETTLE_TRIES = 4;
const SETTLE_RETRY_MS = 250;
/** A month's record changes at most so often under one reservation: it is begun, and its limit moves. */
const MAX_TURNS = 4;

/**
 * Budgets a month and tenant. What is left is one number in the store, taken from in one step, so that all processes
 * together never reserve more than there is. A call can cost more than its estimate; it was let in then, and the next one
 * is not. What a process that dies has reserved counts as spent: its calls may have been served.
 */
export function makeBudgets({ store, logger, onRefusal }: BudgetDeps): Budgets {
  const limits = makeFreshCache(async (tenantId) => (await store.tenants.find(tenantId))?.monthlyBudgetNanoUsd);
  const settling = new Set<Promise<void>>();
  const months = makeMonths(store, onRefusal);

  const give = async (tenantId: string, month: string, nanoUsd: number) => {
    for (let tries = 1; ; tries += 1) {
      try {
        return await store.budgets.give(tenantId, month, nanoUsd);
      } catch (error) {
        if (tries === SETTLE_TRIES) {
          logger.error({ err: error, tenantId, nanoUsd }, "a reservation could not be settled and counts as spent");
          return;
        }
        await delay(jittered(SETTLE_RETRY_MS * 2 ** tries));
      }
    }
  };
  const take = async (tenantId: string, limitNanoUsd: number, nanoUsd: number): Promise<Reservation> => {
    const { month } = await months.take(tenantId, limitNanoUsd, nanoUsd);
    let isSettled = false;
    return {
      settle(costNanoUsd) {
        if (isSettled) return;
        isSettled = true;
        const giving = give(tenantId, month, nanoUsd - costNanoUsd).finally(() => settling.delete(giving));
        settling.add(giving);
      },
    };
  };
  return {
    reserve(tenantId, toAmount) {
      const limit = limits.find(tenantId);
      if (limit === undefined) return undefined;
      const amount = toAmount();
      if (amount === 0) {
        if (typeof limit !== "number") limit.catch(() => undefined); // a failed read is nobody's: nothing is taken
        return undefined;
      }
      if (typeof limit === "number") return take(tenantId, limit, amount);
      return limit.then((read) => (read === undefined ? undefined : take(tenantId, read, amount)));
    },
    async reserveForLater(tenantId, toAmount) {
      const limit = await limits.find(tenantId);
      const amount = limit === undefined ? 0 : toAmount();
      return limit === undefined || amount === 0 ? undefined : months.take(tenantId, limit, amount);
    },
    settleLater: (tenantId, { month, nanoUsd }, costNanoUsd) => give(tenantId, month, nanoUsd - costNanoUsd),
    async view(tenantId) {
      const limitNanoUsd = await limits.find(tenantId);
      if (limitNanoUsd === undefined) return null;
      const month = new Date().toISOString().slice(0, 7);
      const { leftNanoUsd } = await months.current(tenantId, month, limitNanoUsd);
      return { month, limitUsd: toUsd(limitNanoUsd), leftUsd: toUsd(leftNanoUsd) };
    },
    async set(tenantId, usd) {
      await store.tenants.setBudget(tenantId, usd === null ? null : Math.round(usd * 1e9));
      limits.forget(tenantId);
    },
    flush: async () => void (await Promise.all(settling)),
  };
}

/** The months' records: begun at their first call, and moved when the limit is. */
function makeMonths(store: BudgetDeps["store"], onRefusal: () => void) {
  const spentIn = async (tenantId: string, month: string) => {
    const rows = await store.usage.sum(tenantId, { from: `${month}-01`, to: `${month}-31`, groupBy: "model" });
    return rows.reduce((sum, row) => sum + row.costNanoUsd, 0);
  };
  /** The month's record, begun or moved to the limit when need be. */
  const current = async (tenantId: string, month: string, limitNanoUsd: number) => {
    for (let turn = 0; turn < MAX_TURNS; turn += 1) {
      const there = await store.budgets.find(tenantId, month);
      if (there?.limitNanoUsd === limitNanoUsd) return there;
      if (there) await store.budgets.moveLimit(there, limitNanoUsd);
      else {
        const leftNanoUsd = limitNanoUsd - (await spentIn(tenantId, month));
        await store.budgets.begin(tenantId, month, { limitNanoUsd, leftNanoUsd });
      }
    }
    throw new AppError("unavailable", "The budget changes too often right now.", { retryable: true });
  };
  const take = async (tenantId: string, limitNanoUsd: number, nanoUsd: number): Promise<ReservedAmount> => {
    const month = new Date().toISOString().slice(0, 7);
    await current(tenantId, month, limitNanoUsd);
    if (!(await store.budgets.take(tenantId, month, nanoUsd))) {
      onRefusal();
      throw new AppError("budget_exhausted", `The budget of ${toUsd(limitNanoUsd)} USD for ${month} is used up.`, {
        details: { month, limitUsd: toUsd(limitNanoUsd) },
      });
    }
    return { month, nanoUsd };
  };
  return { current, take };
}
