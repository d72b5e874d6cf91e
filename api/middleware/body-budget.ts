import { AppError, unavailable } from "../../src/errors.ts";
import type { ApiContext } from "../context.ts";

/** Bodies up to this size are not counted: the places for concurrent requests bound them. In bytes. */
const SMALL_BYTES = 1 << 20;

export type BodyBudget = ReturnType<typeof makeBodyBudget>;

/**
 * The memory that large bodies of one process may take together, and those of one tenant, in bytes. A body without a
 * `Content-Length` counts as one of the largest that is allowed. The result reserves it until the response is over.
 * @throws AppError `too_many_concurrent` when the tenant has its share, `unavailable` when there is none left.
 */
export function makeBodyBudget({ totalBytes, tenantBytes }: { totalBytes: number; tenantBytes: number }) {
  const takenBy = new Map<string, number>();
  let taken = 0;
  return function reserveForBody(ctx: ApiContext, limitBytes: number): void {
    const length = ctx.get("content-length");
    const isUnknown = length === "" && ctx.get("transfer-encoding") !== "";
    const bytes = isUnknown ? limitBytes : Math.min(Number(length), limitBytes);
    if (!(bytes > SMALL_BYTES)) return;
    const tenantId = ctx.state.caller?.tenantId ?? "";
    const own = takenBy.get(tenantId) ?? 0;
    if (own > 0 && own + bytes > tenantBytes) {
      const message = "Too many large bodies at once; wait until some of yours have ended.";
      throw new AppError("too_many_concurrent", message, { retryable: true, retryAfterMs: 1_000 });
    }
    if (taken + bytes > totalBytes) throw unavailable("Memory for another large body");
    taken += bytes;
    takenBy.set(tenantId, own + bytes);
    ctx.res.once("close", () => {
      taken -= bytes;
      const left = (takenBy.get(tenantId) ?? 0) - bytes;
      if (left > 0) takenBy.set(tenantId, left);
      else takenBy.delete(tenantId);
    });
  };
}
