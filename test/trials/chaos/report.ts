import type { ChaosOutcome } from "./run.ts";

/** Breaches of one promise that are printed. */
const SHOWN = 10;

/** Whether every promise was kept. */
export function isWhole({ checks }: ChaosOutcome): boolean {
  return checks.every(({ breaches }) => breaches.length === 0);
}

/** The account as text, a line a promise. */
export function toReport(outcome: ChaosOutcome): string {
  const faults = Object.entries(outcome.faults).map(([kind, count]) => `${count} × ${kind}`);
  const survived = Object.values(outcome.faults).reduce((sum, count) => sum + count, 0);
  const lines = outcome.checks.flatMap(({ promise, found, breaches }) => [
    `${breaches.length === 0 ? "kept  " : "BROKEN"}  ${promise}`,
    `          ${found}`,
    ...breaches.slice(0, SHOWN).map((breach) => `        ! ${breach}`),
    ...(breaches.length > SHOWN ? [`        ! and ${breaches.length - SHOWN} more`] : []),
  ]);
  const seconds = (outcome.settledAfterMs / 1_000).toFixed(1);
  return [
    `${survived} faults: ${faults.join(", ")}`,
    `${outcome.accepted} jobs accepted; everything had ended ${seconds} s after the last fault`,
    "",
    ...lines,
  ].join("\n");
}
