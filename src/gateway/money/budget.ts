import { AppError } from "../../lib/errors.ts";
import { makeStaleWhileRevalidate } from "../../lib/stale-while-revalidate.ts";
import type { Logger } from "../../observe/logger.ts";
import type { BatchItemRecord } from "../../store/batch-store.ts";
import type { BudgetRecord, BudgetStore, ReservedAmount } from "../../store/budget-store.ts";
import type { TenantStore } from "../../store/tenant-store.ts";
import type { UsageStore } from "../../store/usage-store.ts";
import { type CostBounds, toUsd } from "./prices.ts";
import { makeSettle, recordOf } from "./settle-budgets.ts";
import { makeTurns } from "./turns.ts";

/** An amount that is set aside for a call. */
export type Reservation = {
  nanoUsd: number;
  /** The limits on how it may be spent. */
  bounds: CostBounds;
  /** Puts what the call really cost in the place of what was set aside, once; written behind the call. */
  settle(costNanoUsd: number): void;
};

/** @throws AppError `budget_exhausted` when a budget is used up. */
export function requireLeft(budget: BudgetView | null): void {
  if (budget !== null && isUsedUp(budget))
    throw new AppError("budget_exhausted", `${nameOf(budget)} is used up.`, { details: budget });
}

/** What a call claims: its highest possible cost, or the rest of the budget if that is at least `leastNanoUsd`. */
export type Claim = Pick<CostBounds, "mostNanoUsd" | "leastNanoUsd">;

/** `leftUsd` is neither spent nor set aside for calls under way; those have `reservedUsd`. */
export type BudgetView = { month: string; limitUsd: number; leftUsd: number; reservedUsd: number };

/** The details of a rejection: what the call needs at least, too. */
export type BudgetRejection = BudgetView & { neededUsd: number };

const nameOf = ({ limitUsd, month }: BudgetView) => `The budget of ${limitUsd} USD for ${month}`;

/** Whether a budget has nothing left for a call, even after the calls under way have ended. */
const isUsedUp = ({ leftUsd, reservedUsd }: BudgetView) => leftUsd + reservedUsd <= 0;

export type Budgets = ReturnType<typeof makeBudgets>;

type BudgetDeps = {
  store: { budgets: BudgetStore; tenants: TenantStore; usage: UsageStore };
  logger: Logger;
  /** Called for each call that there is no room for. */
  onRejection(): void;
};

/** Max compare-and-set retries per reservation. */
const MAX_TURNS = 4;
/** The same limit while other calls take from the budget. Each of them leaves less, so few retries are ever needed. */
const MAX_TAKES = 100;
/** A call that got the rest of a budget holds it at most this long, in ms, should its process die. */
const MAX_REST_MS = 900_000;
/** Longest wait for calls under way that hold the rest of a budget, in ms. */
const MAX_WAIT_MS = 60_000;
/** Maximum calls of a tenant that wait in this process, so that its other places for requests stay free. */
const MAX_WAITING = 32;
/** How long a key's month is kept: longer than it lasts, and than its last calls take. */
const KEY_MONTH_MS = 62 * 86_400_000;

/**
 * Budgets a month of tenants, which hold for the tenants too that they made, and of keys. What is left is one number in the store, taken
 * from in one step, so that all processes together never reserve more than there is. A call reserves the most that it can
 * cost, whatever limit it sends: a provider that ignores its limit costs no more than that. Where less is left, one call
 * at a time gets all of it and its answer is limited to what that pays for; so calls near the end of a budget take turns.
 * What a process that dies has reserved counts as spent: its calls may have been served.
 */
export function makeBudgets({ store, logger, onRejection }: BudgetDeps) {
  const limits = makeStaleWhileRevalidate((tenantId) => findLimits(store.tenants, tenantId));
  const settling = new Set<Promise<void>>();
  const months = makeMonths(store, onRejection);
  const turns = makeTurns();

  const settleAll = makeSettle(store.budgets, logger);
  const settle = (amounts: readonly ReservedAmount[], costNanoUsd: number) => {
    const ending = settleAll(amounts, costNanoUsd).finally(() => {
      settling.delete(ending);
      for (const amount of amounts) turns.release(holderOf(amount));
    });
    settling.add(ending);
  };
  const takeInTurn = async (limit: Limit, bounds: CostBounds, signal: AbortSignal) => {
    const options = { signal, waitMs: MAX_WAIT_MS, maxWaiting: MAX_WAITING };
    let latest = limit;
    const amount = await turns.take(holderOf(limit), options, async () => {
      const now = limit.keyId === undefined ? await limits.find(limit.tenantId) : []; // it may have changed during a wait
      latest = now?.find(({ tenantId }) => tenantId === limit.tenantId) ?? latest;
      return months.take(latest, bounds);
    });
    return amount ?? months.reject(latest, bounds);
  };
  const take = async (payer: Payer, bounds: CostBounds, signal: AbortSignal): Promise<Reservation | undefined> => {
    const takeOne = (limit: Limit) => takeInTurn(limit, bounds, signal);
    const all = [...toKeyLimit(payer), ...((await limits.find(payer.tenantId)) ?? [])];
    const amounts = await takeEach(all, takeOne, (taken) => settle(taken, 0));
    if (amounts.length === 0) return undefined;
    const nanoUsd = Math.min(...amounts.map((amount) => amount.nanoUsd));
    return { nanoUsd, bounds, settle: (costNanoUsd) => settle(amounts, costNanoUsd) };
  };
  return {
    /**
     * Sets an amount aside before a call: nothing for a tenant and a key without a budget and for a call that costs nothing,
     * which does not wait for the store. Where other calls of this process hold what is left, it waits up to
     * `MAX_WAIT_MS` for them to end.
     * @throws AppError `budget_exhausted` when less than the claim is left.
     */
    async reserve(payer: Payer, toBounds: () => CostBounds, signal: AbortSignal): Promise<Reservation | undefined> {
      const limit = limits.find(payer.tenantId); // not awaited: a free call does not need it
      if (limit === undefined && payer.keyBudgetUsd === undefined) return undefined;
      const bounds = toBounds();
      if (bounds.mostNanoUsd !== 0) return take(payer, bounds, signal);
      Promise.resolve(limit).catch(() => undefined); // a failed read does not matter: nothing is taken
      return undefined;
    },
    /** The same without a wait, for a call whose end another process may settle, with `settleLater`. */
    async reserveForLater(tenantId: string, toClaim: () => Claim): Promise<ReservedAmount[] | undefined> {
      const found = await limits.find(tenantId);
      if (found === undefined) return undefined;
      const claim = toClaim();
      if (claim.mostNanoUsd === 0) return undefined;
      const takeOne = async (limit: Limit) => (await months.take(limit, claim)) ?? months.reject(limit, claim);
      return takeEach(found, takeOne, (taken) => settleAll(taken, 0));
    },
    settleLater: (tenantId: string, reserved: NonNullable<BatchItemRecord["reserved"]>, costNanoUsd: number) =>
      settleAll(
        Array.from([reserved].flat(), (amount) => ({ tenantId, ...amount })),
        costNanoUsd,
      ),
    /** The budget of the key, the tenant's own or its root's, whichever has least left. */
    async view(tenantId: string, key: Omit<Payer, "tenantId"> = {}): Promise<BudgetView | null> {
      const all = [...toKeyLimit({ tenantId, ...key }), ...((await limits.find(tenantId)) ?? [])];
      const views = await Promise.all(all.map(months.view));
      return views.sort((a, b) => a.leftUsd - b.leftUsd)[0] ?? null;
    },
    /** Sets a tenant's budget a month, in USD; null for none. It holds everywhere within 5 s. */
    async set(tenantId: string, usd: number | null): Promise<void> {
      await store.tenants.setBudget(tenantId, usd === null ? null : Math.round(usd * 1e9));
      limits.forgetWhere(() => true); // it may be the root of many tenants
    },
    /** The same for the limit that a tenant sets for itself: it can only be below the operator's. */
    async setOwn(tenantId: string, usd: number | null): Promise<void> {
      await store.tenants.setBudget(tenantId, usd === null ? null : Math.round(usd * 1e9), "ownBudgetNanoUsd");
      limits.forgetWhere(() => true);
    },
    /** Resolves when all settlements are written or given up. */
    flush: async () => void (await Promise.all(settling)),
  };
}

/** Takes an amount from each limit, or from none if one refuses. */
async function takeEach(
  limits: readonly Limit[] = [],
  takeOne: (limit: Limit) => Promise<ReservedAmount>,
  giveBack: (taken: ReservedAmount[]) => unknown,
): Promise<ReservedAmount[]> {
  const taken: ReservedAmount[] = [];
  try {
    for (const limit of limits) taken.push(await takeOne(limit));
    return taken;
  } catch (error) {
    await giveBack(taken);
    throw error;
  }
}

/** Who pays for a call: a tenant, and a key of it that has a budget of its own. */
export type Payer = { tenantId: string; keyId?: string; keyBudgetUsd?: number | undefined };

type Limit = { tenantId: string; keyId?: string; limitNanoUsd: number };

/** Whose budget a limit or an amount is of. */
const holderOf = ({ tenantId, keyId = tenantId }: Pick<Limit, "tenantId" | "keyId">) => keyId;

function toKeyLimit({ tenantId, keyId, keyBudgetUsd }: Payer): Limit[] {
  if (keyId === undefined || keyBudgetUsd === undefined) return [];
  return [{ tenantId, keyId, limitNanoUsd: Math.round(keyBudgetUsd * 1e9) }];
}

/** What a tenant's calls are taken from: its own budget, then its root's; undefined when neither has one. */
async function findLimits(tenants: TenantStore, tenantId: string): Promise<Limit[] | undefined> {
  const tenant = await tenants.find(tenantId);
  const root = tenant?.rootTenantId === undefined ? null : await tenants.find(tenant.rootTenantId);
  const limits = [tenant, root].flatMap((each) => {
    const set = [each?.monthlyBudgetNanoUsd, each?.ownBudgetNanoUsd].filter((limit) => limit !== undefined);
    return each && set.length > 0 ? [{ tenantId: each._id, limitNanoUsd: Math.min(...set) }] : [];
  });
  return limits.length === 0 ? undefined : limits;
}

/** The records of months. Each is created at the first call of the month and adjusted when the limit changes. */
function makeMonths(store: BudgetDeps["store"], onRejection: () => void) {
  /** The spending of the tenant and of the tenants that it made. */
  const spentIn = async (rootTenantId: string, month: string) => {
    const tenantIds = [rootTenantId, ...(await store.tenants.madeBy(rootTenantId))];
    return store.usage.costOf(tenantIds, { from: `${month}-01`, to: `${month}-31` });
  };
  /** The month's record, created or adjusted to the limit if necessary. */
  const current = async ({ tenantId, keyId, limitNanoUsd }: Limit) => {
    const month = new Date().toISOString().slice(0, 7);
    const record = recordOf(month, keyId);
    for (let turn = 0; turn < MAX_TURNS; turn += 1) {
      const there = await store.budgets.find(tenantId, record);
      if (there?.limitNanoUsd === limitNanoUsd) return { ...there, month };
      if (there) await store.budgets.moveLimit(there, limitNanoUsd);
      else {
        // A key has its budget from its first call on.
        const begun =
          keyId === undefined
            ? { leftNanoUsd: limitNanoUsd - (await spentIn(tenantId, month)) }
            : { leftNanoUsd: limitNanoUsd, expiresAt: new Date(Date.now() + KEY_MONTH_MS) };
        await store.budgets.begin(tenantId, record, { limitNanoUsd, ...begun });
      }
    }
    throw changesTooOften();
  };
  /** Takes what a claim can get from the month; undefined if there is nothing for it. */
  const take = async (limit: Limit, claim: Claim): Promise<ReservedAmount | undefined> => {
    const { tenantId, keyId } = limit;
    const ofWhom = { tenantId, ...(keyId === undefined ? {} : { keyId }) };
    for (let turn = 0; turn < MAX_TAKES; turn += 1) {
      const { month, leftNanoUsd, restHeldUntil } = await current(limit);
      const { mostNanoUsd, leastNanoUsd } = claim;
      if (leftNanoUsd >= mostNanoUsd) {
        const whole = { ...ofWhom, month, nanoUsd: mostNanoUsd };
        if (await store.budgets.take(tenantId, recordOf(month, keyId), whole)) return whole;
        continue;
      }
      const now = Date.now();
      const isRestHeld = (restHeldUntil?.getTime() ?? 0) >= now;
      if (leftNanoUsd < leastNanoUsd || isRestHeld) return undefined;
      const rest = { nanoUsd: leftNanoUsd, restUntil: new Date(now + MAX_REST_MS) };
      if (await store.budgets.take(tenantId, recordOf(month, keyId), rest))
        return { ...ofWhom, month, nanoUsd: leftNanoUsd, isRest: true };
    }
    throw changesTooOften();
  };
  const viewOf = async (limit: Limit) => toView(await current(limit));
  /** @throws AppError always. */
  const reject = async (limit: Limit, { leastNanoUsd }: Claim): Promise<never> => {
    onRejection();
    const view = await viewOf(limit);
    const { leftUsd, reservedUsd } = view;
    const neededUsd = toUsd(leastNanoUsd);
    const budget = nameOf(view);
    const set = reservedUsd > 0 ? `, and ${reservedUsd} USD are set aside for calls under way` : "";
    const message = isUsedUp(view)
      ? `${budget} is used up.`
      : `${budget} has ${leftUsd} USD left${set}; this call needs ${neededUsd} USD.`;
    throw new AppError("budget_exhausted", message, { details: { ...view, neededUsd } satisfies BudgetRejection });
  };
  return { take, reject, view: viewOf };
}

const changesTooOften = () =>
  new AppError("unavailable", "The budget changes too often right now.", { retryable: true });

function toView({ month, limitNanoUsd, leftNanoUsd, reservedNanoUsd = 0 }: BudgetRecord): BudgetView {
  return {
    month,
    limitUsd: toUsd(limitNanoUsd),
    leftUsd: toUsd(leftNanoUsd),
    reservedUsd: toUsd(Math.max(reservedNanoUsd, 0)),
  };
}
