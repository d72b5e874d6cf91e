import { LRUCache } from "lru-cache";
import { defined } from "../defined.ts";
import { makeStaleWhileRevalidate } from "../stale-while-revalidate.ts";
import type { TenantStore } from "../store/tenant-store.ts";
import type { Caller } from "./roles.ts";

/** How long an unknown key is refused without asking the store again, in ms. */
const UNKNOWN_MS = 1_000;
/** Unknown keys have a cache of their own, so that a flood of guesses cannot push the known ones out. */
const MAX_UNKNOWN = 10_000;

type Found = { caller: Caller; expiresAt: number | undefined };

const unknownKey = Symbol("unknown key");

/** Callers by key, as fresh as `makeStaleWhileRevalidate` has them; `lookup` reads one, and its key's end (ms since 1970). */
export function makeCallerCache(tenants: Pick<TenantStore, "find">, lookup: (key: string) => Promise<Found | null>) {
  const unknown = new LRUCache<string, true>({ max: MAX_UNKNOWN, ttl: UNKNOWN_MS });
  const known = makeStaleWhileRevalidate<Found>(async (key) => {
    const found = await lookup(key);
    if (found) {
      const tenant = await tenants.find(found.caller.tenantId);
      return { ...found, caller: { ...found.caller, ...defined({ rootTenantId: tenant?.rootTenantId }) } };
    }
    known.forget(key);
    unknown.set(key, true);
    throw unknownKey; // so that it is not cached among the known ones
  });
  const toCaller = ({ caller, expiresAt }: Found) =>
    expiresAt !== undefined && expiresAt <= Date.now() ? null : caller;
  return {
    /** The caller of `key`, or null. */
    find(key: string): Caller | null | Promise<Caller | null> {
      if (unknown.has(key)) return null;
      const found = known.find(key);
      if (!(found instanceof Promise)) return toCaller(found);
      return found.then(toCaller, (error: unknown) => {
        if (error === unknownKey) return null;
        throw error;
      });
    },
    /** Forgets the callers of a key that was revoked here. */
    forget: (keyId: string) => known.forgetWhere(({ caller }) => caller.keyId === keyId),
  };
}
