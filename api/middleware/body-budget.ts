import type { IncomingMessage } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { AppError, unavailable } from "../../src/lib/errors.ts";
import { rootOf } from "../../src/tenancy/roles.ts";
import type { ApiContext } from "../context.ts";

/** A tenant that sends none for long may send as many bytes at once as in this time, in s: a large file or some. */
const BURST_SECONDS = 16;
/**
 * How much faster than its rate the bodies of a tenant may follow each other within that, beside other tenants and alone:
 * reading one holds up the process, and what it brings is work that the others wait for.
 */
const PACE = { shared: 2, alone: 4 };
/** Tenants whose last uploads are remembered. */
const MAX_TENANTS = 10_000;

type UploadRate = ReturnType<typeof makeUploadRate>;

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

/** Bodies up to this size are not counted: the places for concurrent requests bound them. In bytes. */
const SMALL_BYTES = 1 << 20;
/** Those up to this size do not count for the rate of large bodies either: the rate of requests bounds them. In bytes. */
const QUICK_BYTES = 64 << 10;

/** The least pace of a large body, in bytes a second, and the interval at which it is measured, in ms. */
const LEAST_BYTES_PER_SECOND = 32 << 10;
const MEASURE_MS = 10_000;

export type BodyBudget = ReturnType<typeof makeBodyBudget>;

/**
 * The memory that large bodies of one process may take together, and those of one tenant, in bytes; what stored contents of a
 * request take counts as well. The results reserve it until the response is over.
 */
export function makeBodyBudget(options: {
  totalBytes: number;
  tenantBytes: number;
  takeUpload?: UploadRate;
  measureMs?: number;
}) {
  const { totalBytes, tenantBytes, takeUpload, measureMs = MEASURE_MS } = options;
  const takenBy = new Map<string, number>();
  let taken = 0;
  const nameOf = ({ state: { caller } }: ApiContext) => (caller ? rootOf(caller) : "");
  /** @throws AppError `too_many_concurrent` when the tenant has its share, `unavailable` when there is none left. */
  const reserve = (ctx: ApiContext, bytes: number): void => {
    const name = nameOf(ctx);
    const own = takenBy.get(name) ?? 0;
    if (own > 0 && own + bytes > tenantBytes) {
      const message = "Too many large bodies at once; wait until some of yours have ended.";
      throw new AppError("too_many_concurrent", message, { retryable: true, retryAfterMs: 1_000 });
    }
    if (taken + bytes > totalBytes) throw unavailable("Memory for another large body");
    count(ctx, bytes);
  };
  const count = (ctx: ApiContext, bytes: number): void => {
    const name = nameOf(ctx);
    taken += bytes;
    takenBy.set(name, (takenBy.get(name) ?? 0) + bytes);
    ctx.res.once("close", () => {
      taken -= bytes;
      const left = (takenBy.get(name) ?? 0) - bytes;
      if (left > 0) takenBy.set(name, left);
      else takenBy.delete(name);
    });
  };
  return {
    reserve,
    /** The same for what is there already and cannot be refused any more. */
    count,
    /**
     * Reserves for a body, and waits for its turn among the large ones of its tenant. One without a `Content-Length` counts as
     * one of the largest that is allowed; one that is kept as it comes takes little memory. The connection of one that arrives too slowly is cut, because no other body can use
     * the memory that waits for it.
     * @throws AppError as `reserve`, and as `takeUpload`; `client_closed`.
     */
    async reserveForBody(ctx: ApiContext, limitBytes: number, { isKept = false } = {}): Promise<void> {
      const length = ctx.get("content-length");
      const isUnknown = length === "" && ctx.get("transfer-encoding") !== "";
      const bytes = isUnknown ? limitBytes : Math.min(Number(length), limitBytes);
      if (!(bytes > QUICK_BYTES)) return;
      const isReserved = bytes > SMALL_BYTES;
      if (isReserved) reserve(ctx, isKept ? SMALL_BYTES : bytes);
      const waitMs = takeUpload?.(nameOf(ctx), bytes) ?? 0;
      // One of unknown length is mostly small, and counts for so much that there are few of them.
      if (waitMs > 0 && !isUnknown)
        await delay(waitMs, undefined, { signal: ctx.state.signal }).catch((cause: unknown) => {
          throw clientClosed(cause);
        });
      if (ctx.req.destroyed) throw clientClosed();
      if (!isReserved) return;
      const pace = watchPace(ctx.req, measureMs);
      ctx.res.once("close", () => clearInterval(pace));
    },
  };
}

const clientClosed = (cause?: unknown) => new AppError("client_closed", "The client went away.", { cause });

/** Cuts a request whose body arrives too slowly. */
function watchPace(request: IncomingMessage, measureMs: number): NodeJS.Timeout {
  let before = request.socket.bytesRead;
  return setInterval(() => {
    const { bytesRead } = request.socket;
    const isSlow = bytesRead - before < (LEAST_BYTES_PER_SECOND * measureMs) / 1_000;
    if (isSlow && !request.complete) request.destroy();
    before = bytesRead;
  }, measureMs).unref();
}
