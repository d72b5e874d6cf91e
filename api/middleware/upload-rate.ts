import { LRUCache } from "lru-cache";
import { AppError } from "../../src/errors.ts";

/** A tenant that sends none for long may send as many bytes at once as in this time, in s: a large file or some. */
const BURST_SECONDS = 16;
/** Tenants whose last uploads are remembered. */
const MAX_TENANTS = 10_000;

export type UploadRate = ReturnType<typeof makeUploadRate>;

/**
 * The bytes of large bodies that one tenant may send to this process a second. Receiving and storing them is work that all
 * tenants wait for. The first body after a pause is always taken, whatever its size.
 */
export function makeUploadRate(bytesPerSecond: number) {
  const debts = new LRUCache<string, { bytes: number; at: number }>({ max: MAX_TENANTS });
  /** Takes `bytes` from what the tenant of this name may send. @throws AppError `rate_limited` with the time to wait. */
  return function takeUpload(name: string, bytes: number): void {
    const at = performance.now();
    const last = debts.get(name);
    const owed = last === undefined ? 0 : Math.max(0, last.bytes - ((at - last.at) / 1_000) * bytesPerSecond);
    const over = owed + bytes - BURST_SECONDS * bytesPerSecond;
    if (owed > 0 && over > 0) {
      const message = `Large bodies arrive too fast; a tenant may send ${bytesPerSecond} bytes a second.`;
      const retryAfterMs = Math.ceil((Math.min(over, owed) / bytesPerSecond) * 1_000);
      throw new AppError("rate_limited", message, { retryable: true, retryAfterMs });
    }
    debts.set(name, { bytes: owed + bytes, at });
  };
}
