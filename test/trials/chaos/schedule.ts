import { seededRandom } from "../bench/measure.ts";

/** What is done to the running platform. `freeze` is SIGSTOP and, after a while, SIGCONT; `stop` is SIGTERM. */
export const faultKinds = [
  "kill-worker",
  "kill-api",
  "freeze-worker",
  "freeze-api",
  "stop-worker",
  "kill-redis",
  "freeze-redis",
  "lose-redis",
  "kill-store",
  "freeze-store",
] as const;
export type FaultKind = (typeof faultKinds)[number];

export type Fault = {
  kind: FaultKind;
  /** When it begins, in ms from the start of the load. */
  atMs: number;
  /** How long a frozen process stays frozen, or an ended one stays down, in ms. */
  forMs: number;
  /** Which of several processes it is for: a share of their number, from 0 up to 1. */
  which: number;
};

/** From and to, in ms. Workers may be frozen for longer than a lease lasts, the store for longer than its time-out. */
const durations: Record<FaultKind, readonly [number, number]> = {
  "kill-worker": [100, 1_500],
  "kill-api": [100, 1_500],
  "freeze-worker": [1_000, 5_000],
  "freeze-api": [500, 4_000],
  "stop-worker": [100, 1_500],
  "kill-redis": [0, 0], // its host restarts it
  "freeze-redis": [500, 3_000],
  "lose-redis": [0, 0],
  "kill-store": [0, 0], // the same
  "freeze-store": [500, 4_000],
};
/** How long the load runs undisturbed before the first fault, in ms. */
const WARM_UP_MS = 1_000;

/**
 * The faults of a run, in order. The same seed gives the same faults at the same times. Kinds are dealt like cards: each has
 * its turn before any comes again, so a run with as many faults as kinds has all of them.
 */
export function planFaults(options: { seed: number; durationMs: number; everyMs: number }): Fault[] {
  const random = seededRandom(options.seed);
  const between = (from: number, to: number) => from + random() * (to - from);
  const faults: Fault[] = [];
  let deck: FaultKind[] = [];
  for (let atMs = WARM_UP_MS; atMs < options.durationMs; atMs += options.everyMs * between(0.5, 1.5)) {
    if (deck.length === 0) deck = shuffle(faultKinds, random);
    const kind = deck.pop();
    if (kind === undefined) break;
    faults.push({ kind, atMs: Math.round(atMs), forMs: Math.round(between(...durations[kind])), which: random() });
  }
  return faults;
}

/** Puts each item at a random place among those before it. */
function shuffle<T>(items: readonly T[], random: () => number): T[] {
  const shuffled: T[] = [];
  for (const item of items) shuffled.splice(Math.floor(random() * (shuffled.length + 1)), 0, item);
  return shuffled;
}
