import { LRUCache } from "lru-cache";

/** How long after its read a value is served from memory, in ms. A revocation must take effect within 5 s. */
const FRESH_MS = 4_000;
/** After this time a value is refreshed in the background, in ms, so that busy ones never wait for the store. */
const REFRESH_AFTER_MS = 2_000;
const MAX_ENTRIES = 10_000;

type Entry<V> = { value: V; readAt: number; isRefreshing: boolean };

/** At most `max` values of the store in memory, never older than 4 s. A failed read is thrown and leaves nothing behind. */
export function makeStaleWhileRevalidate<V>(lookup: (key: string) => Promise<V>, max = MAX_ENTRIES) {
  const entries = new LRUCache<string, Entry<V>>({ max });
  const reading = new Map<string, Promise<V>>();

  const read = async (key: string, isCurrent: () => boolean): Promise<V> => {
    const readAt = performance.now(); // before the read: what changes during it may not be seen
    try {
      const value = await lookup(key);
      // If the key was invalidated during the read, the value is returned but not cached.
      if (isCurrent()) entries.set(key, { value, readAt, isRefreshing: false });
      return value;
    } finally {
      if (isCurrent()) reading.delete(key);
    }
  };
  const readOnce = (key: string): Promise<V> => {
    const running = reading.get(key);
    if (running) return running;
    const started: Promise<V> = read(key, () => reading.get(key) === started);
    reading.set(key, started);
    return started;
  };
  return {
    /** The value of a key; a promise only when it must be read. Concurrent calls for a key share one read. */
    find(key: string): V | Promise<V> {
      const entry = entries.get(key);
      if (entry === undefined) return readOnce(key);
      const age = performance.now() - entry.readAt;
      if (age > FRESH_MS) return readOnce(key);
      if (age > REFRESH_AFTER_MS && !entry.isRefreshing) {
        entry.isRefreshing = true;
        // A failed refresh is not the caller's: the value is served until it is too old; then the next read is awaited.
        readOnce(key).catch(() => undefined);
      }
      return entry.value;
    },
    /** Whether a value was found for this key, however long ago, or is being read. */
    has: (key: string) => entries.has(key) || reading.has(key),
    /** Forgets a value that was changed here; other processes learn of it when they read again. */
    forget(key: string): void {
      entries.delete(key);
      reading.delete(key);
    },
    /** The same for each value that `fits` accepts. */
    forgetWhere(fits: (value: V) => boolean): void {
      for (const [key, { value }] of entries) if (fits(value)) entries.delete(key);
      reading.clear(); // nobody knows yet what they will find
    },
  };
}
