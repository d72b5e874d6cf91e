import { AppError } from "../../src/errors.ts";
import type { Rate, RateLimits } from "../../src/tenancy/limits.ts";
import type { ApiContext } from "../context.ts";

/**
 * Takes one request from the tenant's rate and one of its places for concurrent requests, which is given back when the
 * response is over. Says what is left in `RateLimit` (draft-ietf-httpapi-ratelimit-headers).
 * @throws AppError `too_many_concurrent`, or `rate_limited` to a request that holds its place, with the time to wait.
 */
export async function admit(ctx: ApiContext, limits: RateLimits, tenantId: string): Promise<void> {
  const taken = limits.take(tenantId);
  const rate = taken instanceof Promise ? await taken : taken;
  const { headers } = ctx.state;
  headers["ratelimit-policy"] = limits.policy;
  headers.ratelimit = `"requests";r=${rate.remaining};t=${rate.resetSeconds}`;
  ctx.res.once("close", enter(limits, tenantId));
  refuseOverRate(rate);
}

/**
 * The same for one of several calls that came in one request; the result gives its place back.
 * @throws AppError `rate_limited` or `too_many_concurrent`.
 */
export async function admitCall(limits: RateLimits, tenantId: string): Promise<() => void> {
  refuseOverRate(await limits.take(tenantId));
  return enter(limits, tenantId);
}

function refuseOverRate(rate: Rate): void {
  if (rate.isAllowed) return;
  throw new AppError("rate_limited", "Too many requests; wait before the next one.", {
    retryable: true,
    retryAfterMs: rate.retryAfterMs,
  });
}

function enter(limits: RateLimits, tenantId: string): () => void {
  const release = limits.enter(tenantId);
  if (release === null) {
    throw new AppError("too_many_concurrent", "Too many requests at once; wait until some of yours have ended.", {
      retryable: true,
      retryAfterMs: 1_000,
    });
  }
  return release;
}
