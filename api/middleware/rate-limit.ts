import { AppError } from "../../src/errors.ts";
import type { Rate, RateLimits } from "../../src/tenancy/limits.ts";
import type { ApiContext } from "../context.ts";

/**
 * Takes one request from the tenant's rate and one of its places for concurrent requests, which is given back when the
 * response is over. Says what is left in `RateLimit` (draft-ietf-httpapi-ratelimit-headers).
 * @throws AppError `rate_limited` or `too_many_concurrent`, with the time to wait.
 */
export async function admit(ctx: ApiContext, limits: RateLimits, tenantId: string): Promise<void> {
  const taken = limits.take(tenantId);
  const rate = taken instanceof Promise ? await taken : taken;
  const { headers } = ctx.state;
  headers["ratelimit-policy"] = limits.policy;
  headers.ratelimit = `"requests";r=${rate.remaining};t=${rate.resetSeconds}`;
  ctx.res.once("close", enter(limits, tenantId, rate));
}

/**
 * The same for one of several calls that came in one request; the result gives its place back.
 * @throws AppError `rate_limited` or `too_many_concurrent`.
 */
export async function admitCall(limits: RateLimits, tenantId: string): Promise<() => void> {
  return enter(limits, tenantId, await limits.take(tenantId));
}

function enter(limits: RateLimits, tenantId: string, rate: Rate): () => void {
  if (!rate.isAllowed) {
    throw new AppError("rate_limited", "Too many requests; wait before the next one.", {
      retryable: true,
      retryAfterMs: rate.retryAfterMs,
    });
  }
  const release = limits.enter(tenantId);
  if (release === null) {
    throw new AppError("too_many_concurrent", "Too many requests at once; wait until some of yours have ended.", {
      retryable: true,
      retryAfterMs: 1_000,
    });
  }
  return release;
}
