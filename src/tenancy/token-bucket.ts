import { withTimeout } from "../lib/with-timeout.ts";
import type { RedisConnections } from "../store/redis/redis.ts";

/** What a bucket gave: tokens, how many it still holds, and how long until it holds one again, in ms. */
export type Grant = { granted: number; left: number; nextInMs: number };

/** Takes up to `asked` tokens from a tenant's bucket; a negative number puts tokens back. */
export type TakeTokens = (tenantId: string, asked: number) => Promise<Grant>;

export type BucketShape = { capacity: number; tokensPerMs: number };

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
export function makeSharedBuckets(
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
export function makeLocalBuckets({ capacity, tokensPerMs }: BucketShape) {
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
