import { setTimeout as delay } from "node:timers/promises";
import { AppError, unavailable } from "../../lib/errors.ts";
import { newId } from "../../lib/ids.ts";
import { jittered } from "../../lib/jitter.ts";
import type { Logger } from "../../observe/logger.ts";
import type { RunAmount, RunBudgetRecord, RunBudgetStore, RunHold } from "../../store/run-budget-store.ts";
import type { Usage } from "../providers/provider.ts";
import { fromAbort } from "../resilience/transport-errors.ts";
import type { Budgets, Payer, Reservation } from "./budget.ts";
import type { CostBounds } from "./prices.ts";

/** How long a hold is believed whose process does not renew it, and how often it does, in ms. */
const HELD_MS = 60_000;
const RENEW_EVERY_MS = 20_000;
/** How long a call waits for others to end before it takes less than it may use, and how long at most, in ms. */
const PATIENCE_MS = 30_000;
const MAX_WAIT_MS = 900_000;
/** Waits between two looks at a budget, in ms: the first, and the longest. */
const FIRST_LOOK_MS = 20;
const MAX_LOOK_MS = 1_000;
/** Stands for no limit: more than anything uses, and a number that the store adds to without loss. */
const UNLIMITED = Number.MAX_SAFE_INTEGER;

type RunBudgetDeps = {
  store: { runBudgets: RunBudgetStore };
  budgets: Pick<Budgets, "reserve">;
  logger: Logger;
};

/** A call that is about to be made; see `PricedCall`. */
type Asked = { toBounds: () => CostBounds; inputTokens: () => number };

/** What a call would set aside: what it may use, and what it must have at least to be worth its price. */
type Claim = { most: RunAmount; least: RunAmount };
type Held = { budgetId: string; id: string; hold: RunHold };

/** The same as a reservation, of tokens too: `answerTokens` is the longest answer that it has room for. */
export type RunReservation = Omit<Reservation, "settle"> & {
  answerTokens?: number;
  settle(costNanoUsd: number, usage: Usage): void;
};

export type RunBudgets = ReturnType<typeof makeRunBudgets>;

/**
 * What runs of agents have left for all that their tools start: agents, workflows and patterns, and what these start. It is one record
 * in the store, so that calls in any process share it. A call sets aside what it may use with the longest answer that it asks
 * for. If less is left, it waits for the calls under way, and then gets all that is left; so calls near the end take turns.
 */
export function makeRunBudgets({ store: { runBudgets }, budgets, logger }: RunBudgetDeps) {
  const settling = new Set<Promise<void>>();
  const settle = (tenantId: string, held: readonly Held[], used: RunAmount) => {
    const ending = Promise.all(held.map((one) => settleOne(runBudgets, tenantId, one, used)))
      .catch((err: unknown) => logger.error({ err, tenantId }, "a call could not be counted to the budget of its run"))
      .then(() => void settling.delete(ending));
    settling.add(ending);
  };
  /** Renews holds until the call has ended. */
  const keep = (tenantId: string, held: readonly Held[]) => {
    const renew = async () => {
      const until = new Date(Date.now() + HELD_MS);
      await Promise.all(held.map(({ budgetId, id }) => runBudgets.renew(tenantId, budgetId, { id, until })));
    };
    const warn = (err: unknown) => logger.warn({ err, tenantId }, "the hold of a call could not be renewed");
    const timer = setInterval(() => void renew().catch(warn), RENEW_EVERY_MS);
    return () => clearInterval(timer);
  };
  return {
    /** Opens what a run has left; Infinity is no limit. One that is open stays as it is. */
    async open(tenantId: string, budgetId: string, { tokens, usd }: { tokens: number; usd: number }): Promise<void> {
      const nanoUsd = Math.min(Math.floor(usd * 1e9), UNLIMITED);
      await runBudgets.open(tenantId, budgetId, { tokens: Math.min(tokens, UNLIMITED), nanoUsd });
    },
    /** Removes what was opened for a run, which has ended. */
    close: runBudgets.remove,
    /**
     * Sets aside what a call may use, of each of these budgets, and of those of its payer; see `reserve` of the budgets.
     * @throws AppError `budget_exhausted` when too little is left; `unavailable` when others hold it for too long; the signal's reason.
     */
    async reserve(
      payer: Payer,
      boundBy: readonly string[],
      asked: Asked,
      signal: AbortSignal,
    ): Promise<RunReservation> {
      const { tenantId } = payer;
      const bounds = asked.toBounds();
      const prompt = asked.inputTokens();
      const claim = toClaim(bounds, prompt);
      const held: Held[] = [];
      try {
        for (const budgetId of boundBy) held.push(await take(runBudgets, { tenantId, budgetId, claim }, signal));
        const own = await budgets.reserve(payer, () => bounds, signal);
        const stop = keep(tenantId, held);
        const isFree = bounds.mostNanoUsd === 0;
        return {
          // An amount of nothing buys any number of tokens that cost nothing.
          nanoUsd: isFree ? Infinity : Math.min(own?.nanoUsd ?? Infinity, ...held.map(({ hold }) => hold.nanoUsd)),
          answerTokens: Math.min(...held.map(({ hold }) => hold.tokens)) - prompt,
          bounds,
          settle(costNanoUsd, { inputTokens, outputTokens }) {
            stop();
            own?.settle(costNanoUsd);
            settle(tenantId, held, { tokens: inputTokens + outputTokens, nanoUsd: costNanoUsd });
          },
        };
      } catch (error) {
        settle(tenantId, held, { tokens: 0, nanoUsd: 0 });
        throw error;
      }
    },
    /** Resolves when all calls that have ended are counted. */
    flush: async () => void (await Promise.all(settling)),
  };
}

const toClaim = ({ priceOf, asked, least, leastNanoUsd }: CostBounds, prompt: number): Claim => ({
  most: { tokens: prompt + asked, nanoUsd: priceOf(asked) },
  least: { tokens: prompt + least, nanoUsd: leastNanoUsd },
});

async function settleOne(runBudgets: RunBudgetStore, tenantId: string, { budgetId, ...held }: Held, used: RunAmount) {
  if (await runBudgets.settle(tenantId, budgetId, { ...held, used })) return;
  await runBudgets.spend(tenantId, budgetId, used); // its process was slow for so long that others took it for dead
}

/** Sets an amount aside, as soon as there is enough. @throws as `reserve`. */
async function take(
  runBudgets: RunBudgetStore,
  { tenantId, budgetId, claim }: { tenantId: string; budgetId: string; claim: Claim },
  signal: AbortSignal,
): Promise<Held> {
  const beganAt = performance.now();
  const id = newId("log");
  for (let looks = 0; ; looks += 1) {
    if (signal.aborted) throw fromAbort(signal);
    const budget = await runBudgets.find(tenantId, budgetId);
    if (budget === null) throw exhausted("The run that has started this has ended.");
    if (await giveBackDead(runBudgets, budget)) continue;
    const waitedMs = performance.now() - beganAt;
    const isAlone = Object.keys(budget.holds).length === 0;
    const amount = amountOf(budget, claim, isAlone || waitedMs > PATIENCE_MS);
    const hold = amount && { ...amount, until: new Date(Date.now() + HELD_MS) };
    if (hold && (await runBudgets.hold(tenantId, budgetId, { id, hold }))) return { budgetId, id, hold };
    if (!hold && isAlone) throw exhausted(describe(budget));
    if (waitedMs > MAX_WAIT_MS) throw unavailable("What is left of the run's budget");
    const lookMs = jittered(Math.min(FIRST_LOOK_MS * 2 ** looks, MAX_LOOK_MS));
    await delay(lookMs, undefined, { signal }).catch(() => undefined); // the loop says so
  }
}

/** What a call gets: all that it may use, or the rest if that is enough and `mayTakeRest`. */
function amountOf(
  { leftTokens, leftNanoUsd }: RunBudgetRecord,
  { most, least }: Claim,
  mayTakeRest: boolean,
): RunAmount | undefined {
  const tokens = Math.min(most.tokens, Math.max(0, leftTokens));
  const nanoUsd = Math.min(most.nanoUsd, Math.max(0, leftNanoUsd));
  if (tokens === most.tokens && nanoUsd === most.nanoUsd) return most;
  return mayTakeRest && tokens >= least.tokens && nanoUsd >= least.nanoUsd ? { tokens, nanoUsd } : undefined;
}

/** Gives back what calls of processes that died have set aside: nobody waits for them. Returns whether there were some. */
async function giveBackDead(runBudgets: RunBudgetStore, { tenantId, _id, holds }: RunBudgetRecord): Promise<boolean> {
  const dead = Object.entries(holds).filter(([, { until }]) => until.getTime() < Date.now());
  const used = { tokens: 0, nanoUsd: 0 };
  await Promise.all(dead.map(([id, hold]) => runBudgets.settle(tenantId, _id, { id, hold, used })));
  return dead.length > 0;
}

const exhausted = (message: string) => new AppError("budget_exhausted", message);

function describe({ leftTokens, leftNanoUsd }: RunBudgetRecord): string {
  const parts = [
    ...(leftTokens < UNLIMITED / 2 ? [`${Math.max(0, leftTokens)} tokens`] : []),
    ...(leftNanoUsd < UNLIMITED / 2 ? [`${Math.max(0, leftNanoUsd) / 1e9} USD`] : []),
  ];
  return `The run that has started this has ${parts.join(" and ")} left, which is not enough for this call.`;
}
