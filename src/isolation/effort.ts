/** Processor time that an owner may have used at once, in ms, and how much of it comes back in a ms. */
const AT_ONCE_MS = 300;
const REGAINED = 0.1;
/** Owners that are remembered, the latest ones. */
const MAX_OWNERS = 10_000;

/** Who has used much processor time of late: more than some at once, and then more than a tenth of the time. */
export function makeEffort(now: () => number = () => performance.now()) {
  const owners = new Map<string, { usedMs: number; at: number }>();
  const usedBy = (owner: string) => {
    const { usedMs = 0, at = 0 } = owners.get(owner) ?? {};
    return Math.max(0, usedMs - (now() - at) * REGAINED);
  };
  return {
    add(owner: string, ms: number): void {
      const usedMs = usedBy(owner) + ms;
      owners.delete(owner); // to the end: the map keeps the order
      owners.set(owner, { usedMs, at: now() });
      const [oldest] = owners.keys();
      if (oldest !== undefined && owners.size > MAX_OWNERS) owners.delete(oldest);
    },
    isHigh: (owner: string) => usedBy(owner) > AT_ONCE_MS,
  };
}
