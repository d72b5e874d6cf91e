import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { jittered } from "../../lib/jitter.ts";
import type { Logger } from "../../observe/logger.ts";
import type { BudgetStore, ReservedAmount } from "../../store/budget-store.ts";
import { gatherWrites } from "../../store/gather-writes.ts";

/** Attempts at a settlement; when all fail, the amount stays set aside until the month ends. */
const SETTLE_ATTEMPTS = 4;
const SETTLE_RETRY_MS = 250;

/** How the record of a month is named: a tenant and month have one, and so have a key and month. */
export const recordOf = (month: string, keyId: string | undefined) =>
  keyId === undefined ? month : `${month}:${keyId}`;

type Settlement = { amount: ReservedAmount; costNanoUsd: number };

/**
 * Writes settlements, in a few attempts: those of a month that come at the same time together, and one after the other, so that what
 * was written and not answered is not written twice.
 */
export function makeSettle(budgets: BudgetStore, logger: Logger) {
  const writer = `w${randomBytes(6).toString("hex")}`;
  let number = 0;
  const settleMonth = async (settlements: readonly Settlement[], { tenantId, month, keyId }: ReservedAmount) => {
    const takenNanoUsd = sumOf(settlements, ({ amount }) => amount.nanoUsd);
    const costNanoUsd = sumOf(settlements, (one) => one.costNanoUsd);
    const isRest = settlements.some(({ amount }) => amount.isRest);
    number += 1;
    const settling = { takenNanoUsd, costNanoUsd, isRest, writer, number };
    for (let attempts = 1; ; attempts += 1) {
      try {
        return await budgets.settle(tenantId, recordOf(month, keyId), settling);
      } catch (error) {
        if (attempts === SETTLE_ATTEMPTS) {
          const nanoUsd = takenNanoUsd;
          logger.error({ err: error, tenantId, nanoUsd }, "a reservation could not be settled and counts as spent");
          return;
        }
        await delay(jittered(SETTLE_RETRY_MS * 2 ** attempts));
      }
    }
  };
  const { add } = gatherWrites<Settlement>(
    async (settlements) => {
      const months = Map.groupBy(settlements, ({ amount }) => [amount.tenantId, amount.month, amount.keyId].join(" "));
      await Promise.all(months.values().map((ofOne) => ofOne[0] && settleMonth(ofOne, ofOne[0].amount)));
    },
    { most: Number.POSITIVE_INFINITY, everyMs: 0 },
  );
  return async (amounts: readonly ReservedAmount[], costNanoUsd: number) =>
    void (await Promise.all(amounts.map((amount) => add({ amount, costNanoUsd }))));
}

const sumOf = <T>(all: readonly T[], of: (one: T) => number) => all.reduce((sum, one) => sum + of(one), 0);
