import { percentile } from "../bench/measure.ts";
import type { Attack } from "./attack.ts";
import type { Experience } from "./victim.ts";
import type { Peaks } from "./watch-memory.ts";

/** What the victim noticed of an attack, and what the attack did to the processes. */
export type Outcome = {
  attack: Pick<Attack, "name" | "maxRedisGrowthMb">;
  /** What the victim noticed just before. */
  idle: Experience;
  experience: Experience;
  peaks: Peaks;
  /** By how much Redis was larger at its peak than before the attack, in MB. */
  redisGrowthMb: number;
  /** Processes that ended by themselves. */
  ended: readonly string[];
  /** Bytes that the attacker was answered. */
  answeredBytes: number;
};

/** What an attack may do at most: the victim's p99 against the idle one, and the memory of the processes in MB. */
const MAX_SLOWDOWN = 3;
const ALWAYS_ALLOWED_MS = 250;
const MAX_MB = { api: 600, worker: 800 };

/** What is broken by an attack, one sentence each; empty when it is repelled. */
export function breachesOf({ attack, idle, experience, peaks, redisGrowthMb, ended }: Outcome): string[] {
  const breaches: string[] = [];
  const p99Of = ({ calls, jobs }: Experience) => percentile([...calls, ...jobs], 0.99);
  const allowed = Math.max(ALWAYS_ALLOWED_MS, MAX_SLOWDOWN * p99Of(idle));
  const p99 = p99Of(experience);
  if (p99 > allowed) breaches.push(`p99 of all that the victims asked for: ${ms(p99)}, allowed ${ms(allowed)}`);
  const errors = [...idle.errors, ...experience.errors];
  if (errors.length > 0) breaches.push(`${errors.length} errors of the victim, the first: ${errors[0]}`);
  for (const one of ended) breaches.push(one);
  for (const kind of ["api", "worker"] as const) {
    if (peaks[kind] > MAX_MB[kind]) breaches.push(`the ${kind} took ${Math.round(peaks[kind])} MB of ${MAX_MB[kind]}`);
  }
  const { maxRedisGrowthMb = Number.POSITIVE_INFINITY } = attack;
  if (redisGrowthMb > maxRedisGrowthMb) {
    breaches.push(`Redis grew by ${Math.round(redisGrowthMb)} MB of ${Math.round(maxRedisGrowthMb)}`);
  }
  return breaches;
}

const processes = ["api", "worker", "store", "redis", "child"] as const satisfies readonly (keyof Peaks)[];

export const heading = toRow({
  name: "attack",
  times: ["idle p99", "calls p50", "p99", "worst", "idle p99", "jobs p50", "p99", "worst"],
  counts: ["errors", ...processes.map((kind) => `${kind} MB`), "response MB"],
  verdict: "verdict",
});

export function toLine(
  { attack, idle, experience, peaks, answeredBytes }: Outcome,
  breaches: readonly string[],
): string {
  const timesOf = (kind: "calls" | "jobs") => [
    ms(percentile(idle[kind], 0.99)),
    ...[0.5, 0.99, 1].map((share) => ms(percentile(experience[kind], share))),
  ];
  return toRow({
    name: attack.name,
    times: [...timesOf("calls"), ...timesOf("jobs")],
    counts: [
      experience.errors.length,
      ...processes.map((kind) => Math.round(peaks[kind])),
      (answeredBytes / 1e6).toFixed(1),
    ],
    verdict: breaches.length === 0 ? "repelled" : "BROKEN",
  });
}

type Row = { name: string; times: readonly string[]; counts: readonly (string | number)[]; verdict: string };

function toRow({ name, times, counts, verdict }: Row): string {
  const cells = [...times.map((text) => text.padStart(9)), ...counts.map((text) => String(text).padStart(11))];
  return `${name.padEnd(22)} ${cells.join(" ")}  ${verdict}`;
}

function ms(value: number): string {
  return Number.isNaN(value) ? "–" : `${Math.round(value)} ms`;
}
