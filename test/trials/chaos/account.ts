import { checkAudits } from "./check-audits.ts";
import { checkCanaries, type Kept } from "./check-canaries.ts";
import { checkComposed } from "./check-composed.ts";
import { checkApprovedCalls, checkEffects, checkWorkflows } from "./check-effects.ts";
import { checkJobs } from "./check-jobs.ts";
import { checkMoney } from "./check-money.ts";
import type { Check, Evidence } from "./evidence.ts";

/** Takes the account of a run, one line a promise. */
export async function takeAccount(evidence: Evidence, kept: Kept): Promise<Check[]> {
  const { checks, jobOf, childrenOf } = await checkJobs(evidence);
  return [
    ...checks,
    await checkAudits(evidence, jobOf),
    await checkWorkflows(evidence, jobOf),
    await checkComposed(evidence, { jobOf, childrenOf }),
    checkEffects(evidence, { jobOf, childrenOf }),
    await checkApprovedCalls(evidence, jobOf),
    ...(await checkMoney(evidence, jobOf)),
    {
      promise: "no tenant sees another's data",
      found: `${evidence.load.reads} reads that looked for it, ${evidence.external.invoice.length} prompts`,
      breaches: [
        ...evidence.load.breaches,
        ...evidence.external.mixed.map((who) => `a prompt held the data of ${who}`),
      ],
    },
    await checkCanaries(evidence, kept),
    {
      promise: "no answer of 5xx but 502, 503 and 504",
      found: toStatusText(evidence.statuses),
      breaches: [...evidence.strangeAnswers],
    },
    {
      promise: "no process ends by itself",
      found: `${evidence.endedByThemselves.length} did`,
      breaches: [...evidence.endedByThemselves],
    },
  ];
}

function toStatusText(statuses: ReadonlyMap<number, number>): string {
  const sorted = [...statuses].sort(([a], [b]) => a - b);
  return sorted.map(([status, count]) => `${count} × ${status === 0 ? "cut" : status}`).join(", ");
}
