import { rm } from "node:fs/promises";
import { join } from "node:path";
import { withDisposables } from "../../../src/lib/disposables.ts";
import { allAttacks } from "./all-attacks.ts";
import type { Attack } from "./attack.ts";
import { type Attacker, startAttacker } from "./attacker.ts";
import { breachesOf, heading, type Outcome, toLine } from "./report.ts";
import { openReports, type Reports } from "./reports.ts";
import { openStack, type Stack } from "./stack.ts";
import { type Experience, live } from "./victim.ts";
import { watchMemory } from "./watch-memory.ts";

export type SiegeOptions = {
  /** The attacks to run. */
  attacks: readonly Attack[];
  /** How long each attack lasts, in ms. */
  attackMs: number;
  workers: number;
  seed: number;
  /** An empty folder for the data and the logs of the processes; those of a repelled attack are removed. */
  folder: string;
  say(text: string): void;
};

/** Time of the victim's calls that are not measured: the first ones compile code and open connections, in ms. */
const WARM_UP_MS = 4_000;
/** Time of the victim's calls before the attack, which are measured for comparison, in ms. */
const IDLE_MS = 8_000;
/** Time after an attack in which its remains may still run, in ms; the victim's calls are measured in it too. */
const AFTERMATH_MS = 3_000;

/** The attacks of these names, all if there are none; or a sentence about a name that no attack has. */
export function chooseAttacks(names: readonly string[]): readonly Attack[] | string {
  const unknown = names.find((name) => !allAttacks.some((attack) => attack.name === name));
  if (unknown) return `There is no attack "${unknown}". \`--list\` prints the names.`;
  return allAttacks.filter(({ name }) => names.length === 0 || names.includes(name));
}

/**
 * Runs each attack against a platform of its own, so that no attack meets the remains of another. A victim works before and
 * during the attack. Returns whether all attacks were repelled.
 */
export async function runSiege({ attacks, say, ...options }: SiegeOptions): Promise<boolean> {
  let isHeld = true;
  say(heading);
  for (const attack of attacks) {
    const folder = join(options.folder, attack.name);
    const outcome = await withDisposables(async (disposables) => {
      try {
        const attacker = await startAttacker();
        disposables.add(async () => attacker.end());
        const reports = await openReports();
        disposables.add(async () => reports.close());
        const outsides = [attacker.origin, reports.origin];
        const stack = await openStack({ ...options, folder, outsides }, disposables);
        return await measure({ ...stack, attacker, reports }, attack, options);
      } finally {
        await disposables.close();
      }
    });
    const breaches = breachesOf(outcome);
    say(toLine(outcome, breaches));
    for (const breach of breaches) say(`    ! ${breach}`);
    if (breaches.length > 0) isHeld = false;
    else await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
  return isHeld;
}

async function measure(
  { fleet, url, keys, victims, attacker, reports }: Stack & { attacker: Attacker; reports: Reports },
  attack: Attack,
  { attackMs, seed }: Pick<SiegeOptions, "attackMs" | "seed">,
): Promise<Outcome> {
  const liveFor = (forMs: number) => live({ url, victims, seed, reports, signal: AbortSignal.timeout(forMs) });
  const { member: memberKey, owner: ownerKey, widget: widgetKey } = keys;
  await attacker.prepare({ name: attack.name, url, memberKey, ownerKey, widgetKey, attackMs });
  await liveFor(WARM_UP_MS);
  const idle = await liveFor(IDLE_MS);
  const memory = watchMemory();
  const redisBefore = memory.now().redis;
  const living: Promise<Experience> = liveFor(attackMs + AFTERMATH_MS);
  const answeredBytes = await attacker.run();
  const experience = await living;
  const peaks = memory.stop();
  return {
    attack,
    idle,
    experience,
    peaks,
    redisGrowthMb: peaks.redis - redisBefore,
    ended: [...fleet.unexpected],
    answeredBytes,
  };
}
