import { LRUCache } from "lru-cache";
import { AppError } from "../../src/errors.ts";

/** A tenant that sends none for long may send as many bytes at once as in this time, in s: a large file or some. */
const BURST_SECONDS = 16;
/** How much faster than its rate a tenant's bodies may follow each other within that: reading one holds up the process. */
const BURST_PACE = 4;
/** Tenants whose last uploads are remembered. */
const MAX_TENANTS = 10_000;

export type UploadRate = ReturnType<typeof makeUploadRate>;

/**
 * The bytes of large bodies that one tenant may send to this process a second. Receiving, reading and storing them is work that
 * all tenants wait for. The first body after a pause is always taken, whatever its size, and at once.
 */
export function makeUploadRate(bytesPerSecond: number, now: () => number = () => performance.now()) {
  /** `bytes`: what is owed since `at`. `freeAt`: when the next body may be read. */
  const debts = new LRUCache<string, { bytes: number; at: number; freeAt: number }>({ max: MAX_TENANTS });
  /**
   * Takes `bytes` from what the tenant of this name may send, and returns the time until they are to be read, in ms: that of
   * the bodies before them at four times the rate. @throws AppError `rate_limited` with the time to wait.
   */
  return function takeUpload(name: string, bytes: number): number {
    const at = now();
    const last = debts.get(name);
    const owed = last === undefined ? 0 : Math.max(0, last.bytes - ((at - last.at) / 1_000) * bytesPerSecond);
    const over = owed + bytes - BURST_SECONDS * bytesPerSecond;
    if (owed > 0 && over > 0) {
      const message = `Large bodies arrive too fast; a tenant may send ${bytesPerSecond} bytes a second.`;
      const retryAfterMs = Math.ceil((Math.min(over, owed) / bytesPerSecond) * 1_000);
      throw new AppError("rate_limited", message, { retryable: true, retryAfterMs });
    }
    const turnAt = Math.max(at, last?.freeAt ?? 0);
    const freeAt = turnAt + (bytes / (BURST_PACE * bytesPerSecond)) * 1_000;
    debts.set(name, { bytes: owed + bytes, at, freeAt });
    return turnAt - at;
  };
}
