import { makePresence } from "../isolation/presence.ts";
import { makeShares } from "../isolation/shares.ts";

/** Calls of one tenant at a time, while other tenants work here too. */
const AT_ONCE = 2;
/** Longest wait for a turn, in ms; then a call runs without one, as while the store is unavailable. */
const MAX_WAIT_MS = 2_000;

/**
 * Makes turns for the calls that accept or cancel jobs. While several tenants do so in this process, one tenant's calls have
 * their turns two at a time: each is several writes, and those of a burst would all stand before the writes of others. A tenant
 * that is alone does not wait.
 */
export function makeJobTurns({ maxWaitMs = MAX_WAIT_MS } = {}) {
  const presence = makePresence();
  const turns = makeShares({ size: Number.POSITIVE_INFINITY, perOwner: AT_ONCE });
  const enter = (tenantId: string) => turns.enter(tenantId, AbortSignal.timeout(maxWaitMs)).catch(() => undefined); // it waited long enough
  /** Runs one call's work in its tenant's turn. @throws what `work` throws. */
  return async function inTurn<T>(tenantId: string, work: () => Promise<T>): Promise<T> {
    presence.begins(tenantId);
    const leave = presence.hasOthers(tenantId) ? await enter(tenantId) : undefined;
    try {
      return await work();
    } finally {
      leave?.();
    }
  };
}
