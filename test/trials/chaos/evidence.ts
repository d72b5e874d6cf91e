import type { Db } from "mongodb";
import type { ExternalWorld } from "./external-world.ts";
import type { Accepted, Load } from "./load.ts";
import type { Tenant } from "./work.ts";

/** One promise: what was found, and what breaks it, if anything. */
export type Check = { promise: string; found: string; breaches: string[] };

/** The evidence of the account: the responses to clients, the calls that reached the world outside, and the database itself. */
export type Evidence = {
  db: Db;
  tenants: readonly Tenant[];
  load: Load;
  external: ExternalWorld;
  /** How often each item of a batch was submitted to the provider, by job. */
  submitted: ReadonlyMap<string, number>;
  strangeAnswers: readonly string[];
  statuses: ReadonlyMap<number, number>;
  endedByThemselves: readonly string[];
  /** When each process ended; see `Fleet`. */
  ends: readonly number[];
};

export const total = (counts: ReadonlyMap<unknown, number>) => [...counts.values()].reduce((sum, n) => sum + n, 0);

/** Counts items by a name, as `3 failed, 120 completed`. */
export function countText(names: Iterable<string>): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  const sorted = [...counts].sort(([, a], [, b]) => b - a);
  return sorted.map(([name, count]) => `${count} ${name}`).join(", ") || "none";
}

/** Whose work it is, in a line about a breach. */
export const about = ({ work, ticket, id }: Accepted) => `${work} ${ticket} (${id})`;
