import { LRUCache } from "lru-cache";
import { AppError } from "../../src/lib/errors.ts";

/** A tenant that sends none for long may send as many bytes at once as in this time, in s: a large file or some. */
const BURST_SECONDS = 16;
/**
 * How much faster than its rate the bodies of a tenant may follow each other within that, beside other tenants and alone:
 * reading one holds up the process, and what it brings is work that the others wait for.
 */
const PACE = { shared: 2, alone: 4 };
/** Tenants whose last uploads are remembered. */
const MAX_TENANTS = 10_000;

export type UploadRate = ReturnType<typeof makeUploadRate>;

/**
 * The bytes of large bodies that one tenant may send to this process a second. Receiving, reading and storing them is work that
 * all tenants wait for. The first body after a pause is always taken, whatever its size, and at once.
 */
export function makeUploadRate(options: {
  bytesPerSecond: number;
  /** Beside other tenants, bodies follow each other no faster than this, however small they are. */
  requestsPerMinute: number;
  /** Whether tenants other than that of this name work here. */
  hasOthers(name: string): boolean;
  now?: () => number;
}) {
  const { bytesPerSecond, hasOthers, now = () => performance.now() } = options;
  const gapMs = 60_000 / options.requestsPerMinute;
  /** `bytes`: what is owed since `at`. `freeAt`: when the next body may be read. */
  const debts = new LRUCache<string, { bytes: number; at: number; freeAt: number }>({ max: MAX_TENANTS });
  /**
   * Takes `bytes` from what the tenant of this name may send, and returns the time until they are to be read, in ms: that which
   * the bodies before them take at their pace.
   * @throws AppError `rate_limited` with the time to wait.
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
    const isShared = hasOthers(name);
    const readMs = (bytes / (bytesPerSecond * (isShared ? PACE.shared : PACE.alone))) * 1_000;
    const freeAt = turnAt + (isShared ? Math.max(readMs, gapMs) : readMs);
    debts.set(name, { bytes: owed + bytes, at, freeAt });
    return turnAt - at;
  };
}
