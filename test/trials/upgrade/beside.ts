import { setTimeout as delay } from "node:timers/promises";
import type { Fleet } from "../chaos/fleet.ts";
import { type ChaosOutcome, runChaos } from "../chaos/run.ts";
import { jobWorkNames } from "../chaos/work.ts";

/** How long the load goes on after one of the releases has ended, in ms. */
const ALONE_MS = 20_000;

/** Times that a busy machine keeps: nothing is killed here. */
const settings = { JOB_LEASE_MS: "30000", STORE_TIMEOUT_MS: "15000", SHUTDOWN_GRACE_MS: "20000" };

export type Leaving = "earlier" | "present";

/**
 * Runs an API and a worker of each of two releases on one store and one Redis, which the earlier one fills first, under mixed
 * load for `besideMs`. Then the processes of one of them start again on what both have written, as in an update or its undoing,
 * the other one ends for good, and the load goes on.
 */
export function runBeside(options: {
  earlier: string;
  present: string;
  leaving: Leaving;
  besideMs: number;
  folder: string;
  say(text: string): void;
}): Promise<ChaosOutcome> {
  const { earlier, present, leaving, besideMs, folder, say } = options;
  const [leaves, whichStays] = leaving === "earlier" ? [earlier, 0.9] : [present, 0]; // of the processes in their order
  const replace = async (fleet: Fleet) => {
    await delay(besideMs);
    const again = { which: whichStays, signal: "SIGTERM", awayMs: 0 } as const;
    await Promise.all([fleet.end("api", again), fleet.end("worker", again)]);
    say(`the ${leaving} release ends; the other one, started again, goes on …`);
    await fleet.retire(leaves);
    await delay(ALONE_MS);
  };
  return runChaos({
    seed: 1,
    tenants: 3,
    apis: 1,
    workers: 1,
    releases: [earlier, present],
    works: jobWorkNames.filter((name) => name !== "composed"), // an earlier release may not know its steps
    settings,
    durationMs: besideMs + ALONE_MS,
    everyMs: replace,
    folder,
    say,
  });
}
