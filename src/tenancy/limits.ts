import type { Config } from "../config/config.ts";
import { withTimeout } from "../lib/with-timeout.ts";
import type { Logger } from "../observe/logger.ts";
import type { RedisConnections } from "../store/redis/redis.ts";

/** Part of the bucket that a process leases at a time, and the most of it. */
const LEASE_SHARE = 1 / 20;
const MAX_LEASE = 10_000;
/** After this silence of a tenant its leased tokens are returned, in ms. */
const IDLE_MS = 1_000;
/** After this silence a process forgets a tenant, in ms. */
const FORGET_MS = 120_000;
/** Longest wait for Redis, and the pause in using it after a failure, in ms. */
const REDIS_TIMEOUT_MS = 250;
const REDIS_PAUSE_MS = 1_000;

export type Rate = { isAllowed: boolean; remaining: number; resetSeconds: number; retryAfterMs: number };

export type RateLimits = ReturnType<typeof makeRateLimits>;

type TenantRate = {
  /** Leased tokens that are not used yet. */
  tokens: number;
  /** Tokens in the shared bucket, as of the last lease. */
  left: number;
  /** Until when the shared bucket is known to be empty, by `performance.now()`. */
  emptyUntil: number;
  usedAt: number;
  leasing: Promise<void> | undefined;
};

/**
 * Rate limits: one token bucket a tenant in Redis (`requestsPerMinute` is its size and its refill a minute), of which each
 * process leases small shares ahead, in the background, so that a request does not wait for Redis.
 * Only tokens that were taken from the bucket are spent, so all processes together never admit more than the bucket gives.
 * They may admit less by what others hold leased: at most a twentieth of the bucket a process, for about 1 s after the
 * tenant's last request there. While Redis is unavailable each process limits on its own, so that N of them admit up to N times.
 */
export function makeRateLimits(deps: {
  config: Pick<Config["limits"], "requestsPerMinute" | "concurrentRequests">;
  redis: Pick<RedisConnections, "producer" | "prefix">;
  logger: Logger;
}) {
  const { requestsPerMinute: capacity, concurrentRequests } = deps.config;
  const shape = { capacity, tokensPerMs: capacity / 60_000 };
  const leaseSize = Math.max(1, Math.min(MAX_LEASE, Math.floor(capacity * LEASE_SHARE)));
  const bucket = makeBucketWithFallback(deps, shape);
  const rates = new Map<string, TenantRate>();

  const lease = (tenantId: string, rate: TenantRate) => {
    rate.leasing ??= bucket
      .take(tenantId, leaseSize)
      .then(({ granted, left, nextInMs }) => {
        rate.tokens += granted;
        rate.left = left;
        if (granted === 0) rate.emptyUntil = performance.now() + nextInMs;
      })
      .finally(() => {
        rate.leasing = undefined;
      });
    return rate.leasing;
  };
  const view = (rate: TenantRate, isAllowed: boolean): Rate => {
    const remaining = Math.max(0, rate.left + rate.tokens);
    return {
      isAllowed,
      remaining: isAllowed ? remaining : 0,
      resetSeconds: Math.ceil((capacity - remaining) / (capacity / 60)),
      retryAfterMs: isAllowed ? 0 : Math.max(1, rate.emptyUntil - performance.now()),
    };
  };
  const takeLeased = async (tenantId: string, rate: TenantRate): Promise<Rate> => {
    // Ends: each round gives at least one waiting request its token, or finds the bucket empty.
    for (;;) {
      if (rate.tokens > 0) return spend(tenantId, rate);
      if (performance.now() < rate.emptyUntil) return view(rate, false);
      await lease(tenantId, rate);
    }
  };
  const spend = (tenantId: string, rate: TenantRate): Rate => {
    rate.tokens -= 1;
    if (rate.tokens <= leaseSize >> 1 && performance.now() >= rate.emptyUntil) void lease(tenantId, rate);
    return view(rate, true);
  };
  const sweep = setInterval(() => {
    const now = performance.now();
    for (const [tenantId, rate] of rates) {
      if (rate.leasing || now - rate.usedAt < IDLE_MS) continue;
      if (rate.tokens > 0) {
        const unused = rate.tokens;
        rate.tokens = 0;
        rate.left += unused;
        void bucket.take(tenantId, -unused);
      } else if (now - rate.usedAt > FORGET_MS) {
        rates.delete(tenantId);
        bucket.forget(tenantId);
      }
    }
  }, IDLE_MS).unref();

  return {
    /** The rule, as the header `RateLimit-Policy` states it. */
    policy: `"requests";q=${capacity};w=60`,
    /** Takes one request from a tenant's rate. Does not wait for Redis while this process holds leased tokens. */
    async take(tenantId: string): Promise<Rate> {
      let rate = rates.get(tenantId);
      if (rate === undefined) {
        rate = { tokens: 0, left: capacity, emptyUntil: 0, usedAt: 0, leasing: undefined };
        rates.set(tenantId, rate);
      }
      rate.usedAt = performance.now();
      return rate.tokens > 0 ? spend(tenantId, rate) : takeLeased(tenantId, rate);
    },
    /** Takes one of a tenant's places for concurrent requests in this process; call the result when it ends. Null: none is free. */
    enter: makePlaces(concurrentRequests),
    close: () => clearInterval(sweep),
  };
}

/** The shared buckets, and this process's own while Redis is unavailable. Never rejects. */
function makeBucketWithFallback(
  { redis, logger }: { redis: Pick<RedisConnections, "producer" | "prefix">; logger: Logger },
  shape: BucketShape,
) {
  const takeShared = makeSharedBuckets(redis, shape, REDIS_TIMEOUT_MS);
  const takeLocal = makeLocalBuckets(shape);
  let pausedUntil = 0;
  return {
    async take(tenantId: string, asked: number): Promise<Grant> {
      if (performance.now() < pausedUntil) return takeLocal(tenantId, asked);
      try {
        return await takeShared(tenantId, asked);
      } catch (error) {
        pausedUntil = performance.now() + REDIS_PAUSE_MS;
        logger.warn({ err: error }, "rate limits are kept in this process until Redis answers");
        return takeLocal(tenantId, asked);
      }
    },
    forget: takeLocal.forget,
  };
}

/** Places for what runs at once, `limit` for each name; call the result when it ends. Null: none is free. */
export function makePlaces(limit: number) {
  const taken = new Map<string, number>();
  return (name: string): (() => void) | null => {
    const count = taken.get(name) ?? 0;
    if (count >= limit) return null;
    taken.set(name, count + 1);
    return () => {
      const left = (taken.get(name) ?? 1) - 1;
      if (left <= 0) taken.delete(name);
      else taken.set(name, left);
    };
  };
}

/** What a bucket gave: tokens, how many it still holds, and how long until it holds one again, in ms. */
type Grant = { granted: number; left: number; nextInMs: number };

/** Takes up to `asked` tokens from a tenant's bucket; a negative number puts tokens back. */
type TakeTokens = (tenantId: string, asked: number) => Promise<Grant>;

type BucketShape = { capacity: number; tokensPerMs: number };

/** The bucket's level is computed from Redis' own clock, so that the clocks of the API processes do not matter. */
const script = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local capacity, perMs, asked = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local state = redis.call('HMGET', KEYS[1], 'level', 'at')
local level = tonumber(state[1]) or capacity
local since = math.max(0, now - (tonumber(state[2]) or now))
level = math.min(capacity, level + since * perMs)
local granted = math.min(asked, math.floor(level))
level = math.min(capacity, level - granted)
redis.call('HSET', KEYS[1], 'level', string.format('%.6f', level), 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(capacity / perMs) + 1000)
local wait = 0
if level < 1 then wait = math.ceil((1 - level) / perMs) end
return { granted, math.floor(level), wait }
`;

/** Buckets in Redis, shared by all API processes. Rejects when Redis does not answer within `timeoutMs`. */
function makeSharedBuckets(
  redis: Pick<RedisConnections, "producer" | "prefix">,
  shape: BucketShape,
  timeoutMs: number,
): TakeTokens {
  return async (tenantId, asked) => {
    const key = `${redis.prefix}:rate:${tenantId}`;
    const response = redis.producer.eval(script, 1, key, shape.capacity, shape.tokensPerMs, asked);
    const late = () => new Error(`Redis did not answer within ${timeoutMs} ms`);
    const grant = (await withTimeout(response, timeoutMs, late)) as unknown[]; // as the script returns
    const [granted = 0, left = 0, nextInMs = 0] = grant.map(Number);
    return { granted, left, nextInMs };
  };
}

/** Buckets in this process alone, while Redis is unavailable. */
function makeLocalBuckets({ capacity, tokensPerMs }: BucketShape) {
  const buckets = new Map<string, { level: number; at: number }>();
  const take = async (tenantId: string, asked: number): Promise<Grant> => {
    const at = performance.now();
    const before = buckets.get(tenantId) ?? { level: capacity, at };
    const level = Math.min(capacity, before.level + (at - before.at) * tokensPerMs);
    const granted = Math.min(asked, Math.floor(level));
    const left = Math.min(capacity, level - granted);
    buckets.set(tenantId, { level: left, at });
    return { granted, left: Math.floor(left), nextInMs: left >= 1 ? 0 : Math.ceil((1 - left) / tokensPerMs) };
  };
  return Object.assign(take, { forget: (tenantId: string) => void buckets.delete(tenantId) });
}
