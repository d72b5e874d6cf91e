import { LRUCache } from "lru-cache";
import type { Caller } from "./roles.ts";

/** A caller is served from memory for so long after it was read, in ms. Revocation is promised to take effect within 5 s. */
const FRESH_MS = 4_000;
/** After this time a request reads the caller anew beside being served, in ms, so that busy keys never wait for the store. */
const REFRESH_AFTER_MS = 2_000;
/** How long a key that is not known is refused without asking the store again, in ms. */
const UNKNOWN_MS = 1_000;
const MAX_CALLERS = 10_000;

type Entry = { caller: Caller; expiresAt: number | undefined; readAt: number; isRefreshing: boolean };

/** What is read of a key: who calls by it, and when it expires (ms since 1970). */
export type Lookup = (hash: string) => Promise<{ caller: Caller; expiresAt: number | undefined } | null>;

export type CallerCache = {
  /** Who calls by `key`, or null. Reads at most once at a time for a key. */
  find(key: string): Caller | null | Promise<Caller | null>;
  /** Forgets the callers of a key that was revoked here; other processes learn of it when they read again. */
  forget(keyId: string): void;
};

/** Callers by their key, in memory, never older than `FRESH_MS`. A failed read is thrown and leaves nothing behind. */
export function makeCallerCache(lookup: Lookup): CallerCache {
  const entries = new LRUCache<string, Entry>({ max: MAX_CALLERS });
  const unknown = new LRUCache<string, true>({ max: MAX_CALLERS, ttl: UNKNOWN_MS });
  const reading = new Map<string, Promise<Caller | null>>();

  const read = async (key: string): Promise<Caller | null> => {
    const readAt = performance.now(); // before the read: what changes during it may not be seen
    try {
      const found = await lookup(key);
      if (found) entries.set(key, { ...found, readAt, isRefreshing: false });
      else {
        entries.delete(key);
        unknown.set(key, true);
      }
      return found?.caller ?? null;
    } finally {
      reading.delete(key);
    }
  };
  const readOnce = (key: string): Promise<Caller | null> => {
    const running = reading.get(key) ?? read(key);
    reading.set(key, running);
    return running;
  };

  return {
    find(key) {
      const entry = entries.get(key);
      if (entry === undefined) return unknown.has(key) ? null : readOnce(key);
      if (entry.expiresAt !== undefined && entry.expiresAt <= Date.now()) return null;
      const age = performance.now() - entry.readAt;
      if (age > FRESH_MS) return readOnce(key);
      if (age > REFRESH_AFTER_MS && !entry.isRefreshing) {
        entry.isRefreshing = true;
        // A failed refresh is not the caller's: the entry serves until it is too old, and then the read is awaited.
        readOnce(key).catch(() => undefined);
      }
      return entry.caller;
    },
    forget(keyId) {
      for (const [key, entry] of entries) if (entry.caller.keyId === keyId) entries.delete(key);
    },
  };
}
