import { LRUCache } from "lru-cache";

/** What stands for every further name. */
export const OTHER = "other";

/**
 * Lets each tenant have at most `names` names in a period, in one process, those that come first: each may be a kept row.
 * `tenants` are remembered; one that is forgotten starts over.
 */
export function makeFirstNames(limits: { names: number; tenants: number; periodMs: number }) {
  const known = new LRUCache<string, { period: number; names: Set<string> }>({ max: limits.tenants });
  /** The name itself, or `other`, for what happened at a time in ms. */
  return (tenantId: string, name: string, time: number): string => {
    const period = Math.floor(time / limits.periodMs);
    let current = known.get(tenantId);
    if (current?.period !== period) {
      current = { period, names: new Set() };
      known.set(tenantId, current);
    }
    if (current.names.size >= limits.names && !current.names.has(name)) return OTHER;
    current.names.add(name);
    return name;
  };
}
