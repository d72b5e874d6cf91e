import { setTimeout as delay } from "node:timers/promises";
import { AppError } from "../../errors.ts";
import { makeFreshCache } from "../../fresh-cache.ts";
import { jittered } from "../../jitter.ts";
import type { Logger } from "../../logger.ts";
import type { BudgetDocument, BudgetStore } from "../../store/budget-store.ts";
import type { TenantStore } from "../../store/tenant-store.ts";
import type { UsageStore } from "../../store/usage-store.ts";
import { type CostBounds, toUsd } from "./prices.ts";
import { makeTurns } from "./turns.ts";

/** An amount that is set aside for a call. */
export type Reservation = {
  nanoUsd: number;
  /** What it may be spent on. */
  bounds: CostBounds;
  /** Puts what the call really cost in the place of what was set aside, once; written behind the call. */
  settle(costNanoUsd: number): void;
};

/** An amount that is set aside, as it is stored with its call. `isRest`: it is less than the call may cost. */
export type ReservedAmount = { month: string; nanoUsd: number; isRest?: boolean };

/** @throws AppError `budget_exhausted` when a budget is used up. */
export function requireLeft(budget: BudgetView | null): void {
  if (budget !== null && isUsedUp(budget))
    throw new AppError("budget_exhausted", `${nameOf(budget)} is used up.`, { details: budget });
}

/** What a call needs: as much as it may cost, or what is left if that is not less than `leastNanoUsd`. */
export type Claim = Pick<CostBounds, "mostNanoUsd" | "leastNanoUsd">;

/** `leftUsd` is neither spent nor set aside for calls under way; those have `reservedUsd`. */
export type BudgetView = { month: string; limitUsd: number; leftUsd: number; reservedUsd: number };

const nameOf = ({ limitUsd, month }: BudgetView) => `The budget of ${limitUsd} USD for ${month}`;

/** Whether a budget has nothing left that a call could get, now or when those under way have ended. */
const isUsedUp = ({ leftUsd, reservedUsd }: BudgetView) => leftUsd + reservedUsd <= 0;

export type Budgets = ReturnType<typeof makeBudgets>;

type BudgetDeps = {
  store: { budgets: BudgetStore; tenants: TenantStore; usage: UsageStore };
  logger: Logger;
  /** Called for each call that there is no room for. */
  onRefusal(): void;
};

/** Attempts at a settlement; when all fail, the amount stays set aside until the month ends. */
const SETTLE_ATTEMPTS = 4;
const SETTLE_RETRY_MS = 250;
/** Max compare-and-set retries per reservation. */
const MAX_TURNS = 4;
/** The same while others take from it; each that comes before us leaves less, so that few turns are ever needed. */
const MAX_TAKES = 100;
/** A call that got the rest of a budget holds it at most this long, in ms, should its process die. */
const MAX_REST_MS = 900_000;
/** Longest wait for calls under way that hold the rest of a budget, in ms. */
const MAX_WAIT_MS = 60_000;
/** Calls of a tenant that wait in this process at most: the others of its places for requests stay free. */
const MAX_WAITING = 32;

/**
 * Budgets a month and tenant. What is left is one number in the store, taken from in one step, so that all processes
 * together never reserve more than there is. A call reserves the most that it can cost, whatever limit it sends: a provider
 * that ignores its limit costs no more than that. Where less is left, one call at a time gets all of it and its answer is
 * limited to what that pays for; so calls near the end of a budget take turns. What a process that dies has reserved
 * counts as spent: its calls may have been served.
 */
export function makeBudgets({ store, logger, onRefusal }: BudgetDeps) {
  const limits = makeFreshCache(async (tenantId) => (await store.tenants.find(tenantId))?.monthlyBudgetNanoUsd);
  const settling = new Set<Promise<void>>();
  const months = makeMonths(store, onRefusal);
  const turns = makeTurns();

  const settleAmount = makeSettle(store.budgets, logger);
  const take = async (tenantId: string, bounds: CostBounds, signal: AbortSignal): Promise<Reservation | undefined> => {
    const read = await limits.find(tenantId);
    if (read === undefined) return undefined;
    let limitNanoUsd = read;
    const options = { signal, waitMs: MAX_WAIT_MS, maxWaiting: MAX_WAITING };
    const amount = await turns.take(tenantId, options, async () => {
      limitNanoUsd = (await limits.find(tenantId)) ?? limitNanoUsd; // it may have changed during a wait
      return months.take(tenantId, limitNanoUsd, bounds);
    });
    if (amount === undefined) throw await months.refuse(tenantId, limitNanoUsd, bounds);
    return {
      nanoUsd: amount.nanoUsd,
      bounds,
      settle(costNanoUsd) {
        const ending = settleAmount(tenantId, amount, costNanoUsd).finally(() => {
          settling.delete(ending);
          turns.release(tenantId);
        });
        settling.add(ending);
      },
    };
  };
  return {
    /**
     * Sets an amount aside before a call. Answers at once, with nothing, for a tenant without a budget and for a call that
     * costs nothing; only others wait for the store. Where other calls of this process hold what is left, it waits up to
     * `MAX_WAIT_MS` for them to end.
     * @throws AppError `budget_exhausted` when less than the claim is left.
     */
    reserve(
      tenantId: string,
      toBounds: () => CostBounds,
      signal: AbortSignal,
    ): Reservation | undefined | Promise<Reservation | undefined> {
      const limit = limits.find(tenantId);
      if (limit === undefined) return undefined;
      const bounds = toBounds();
      if (bounds.mostNanoUsd !== 0) return take(tenantId, bounds, signal);
      Promise.resolve(limit).catch(() => undefined); // a failed read does not matter: nothing is taken
      return undefined;
    },
    /** The same without a wait, for a call whose end another process may settle, with `settleLater`. */
    async reserveForLater(tenantId: string, toClaim: () => Claim): Promise<ReservedAmount | undefined> {
      const limit = await limits.find(tenantId);
      if (limit === undefined) return undefined;
      const claim = toClaim();
      if (claim.mostNanoUsd === 0) return undefined;
      const amount = await months.take(tenantId, limit, claim);
      if (amount === undefined) throw await months.refuse(tenantId, limit, claim);
      return amount;
    },
    settleLater: settleAmount,
    async view(tenantId: string): Promise<BudgetView | null> {
      const limitNanoUsd = await limits.find(tenantId);
      if (limitNanoUsd === undefined) return null;
      return toView(await months.current(tenantId, limitNanoUsd));
    },
    /** Sets a tenant's budget a month, in USD; null for none. It holds everywhere within 5 s. */
    async set(tenantId: string, usd: number | null): Promise<void> {
      await store.tenants.setBudget(tenantId, usd === null ? null : Math.round(usd * 1e9));
      limits.forget(tenantId);
    },
    /** Resolves when all that was settled is written, or given up. */
    flush: async () => void (await Promise.all(settling)),
  };
}

/** Writes a settlement, in a few attempts. */
function makeSettle(budgets: BudgetStore, logger: Logger) {
  return async (tenantId: string, { month, nanoUsd, isRest = false }: ReservedAmount, costNanoUsd: number) => {
    for (let attempts = 1; ; attempts += 1) {
      try {
        return await budgets.settle(tenantId, month, { takenNanoUsd: nanoUsd, costNanoUsd, isRest });
      } catch (error) {
        if (attempts === SETTLE_ATTEMPTS) {
          logger.error({ err: error, tenantId, nanoUsd }, "a reservation could not be settled and counts as spent");
          return;
        }
        await delay(jittered(SETTLE_RETRY_MS * 2 ** attempts));
      }
    }
  };
}

/** The months' records: begun at their first call, and moved when the limit is. */
function makeMonths(store: BudgetDeps["store"], onRefusal: () => void) {
  const spentIn = async (tenantId: string, month: string) => {
    const rows = await store.usage.sum(tenantId, { from: `${month}-01`, to: `${month}-31`, groupBy: "model" });
    return rows.reduce((sum, row) => sum + row.costNanoUsd, 0);
  };
  /** The month's record, begun or moved to the limit when need be. */
  const current = async (tenantId: string, limitNanoUsd: number) => {
    const month = new Date().toISOString().slice(0, 7);
    for (let turn = 0; turn < MAX_TURNS; turn += 1) {
      const there = await store.budgets.find(tenantId, month);
      if (there?.limitNanoUsd === limitNanoUsd) return there;
      if (there) await store.budgets.moveLimit(there, limitNanoUsd);
      else {
        const leftNanoUsd = limitNanoUsd - (await spentIn(tenantId, month));
        await store.budgets.begin(tenantId, month, { limitNanoUsd, leftNanoUsd });
      }
    }
    throw changesTooOften();
  };
  /** Takes what a claim gets of the month; undefined when that is nothing. */
  const take = async (tenantId: string, limitNanoUsd: number, claim: Claim): Promise<ReservedAmount | undefined> => {
    for (let turn = 0; turn < MAX_TAKES; turn += 1) {
      const { month, leftNanoUsd, restHeldUntil } = await current(tenantId, limitNanoUsd);
      const { mostNanoUsd, leastNanoUsd } = claim;
      if (leftNanoUsd >= mostNanoUsd) {
        if (await store.budgets.take(tenantId, month, { nanoUsd: mostNanoUsd })) return { month, nanoUsd: mostNanoUsd };
        continue;
      }
      const now = Date.now();
      const isRestHeld = (restHeldUntil?.getTime() ?? 0) >= now;
      if (leftNanoUsd < leastNanoUsd || isRestHeld) return undefined;
      const rest = { nanoUsd: leftNanoUsd, restUntil: new Date(now + MAX_REST_MS) };
      if (await store.budgets.take(tenantId, month, rest)) return { month, nanoUsd: leftNanoUsd, isRest: true };
    }
    throw changesTooOften();
  };
  const refuse = async (tenantId: string, limitNanoUsd: number, { leastNanoUsd }: Claim): Promise<AppError> => {
    onRefusal();
    const view = toView(await current(tenantId, limitNanoUsd));
    const { leftUsd, reservedUsd } = view;
    const neededUsd = toUsd(leastNanoUsd);
    const budget = nameOf(view);
    const set = reservedUsd > 0 ? `, and ${reservedUsd} USD are set aside for calls under way` : "";
    const message = isUsedUp(view)
      ? `${budget} is used up.`
      : `${budget} has ${leftUsd} USD left${set}; this call needs ${neededUsd} USD.`;
    return new AppError("budget_exhausted", message, { details: { ...view, neededUsd } });
  };
  return { current, take, refuse };
}

const changesTooOften = () =>
  new AppError("unavailable", "The budget changes too often right now.", { retryable: true });

function toView({ month, limitNanoUsd, leftNanoUsd, reservedNanoUsd = 0 }: BudgetDocument): BudgetView {
  return {
    month,
    limitUsd: toUsd(limitNanoUsd),
    leftUsd: toUsd(leftNanoUsd),
    reservedUsd: toUsd(Math.max(reservedNanoUsd, 0)),
  };
}
