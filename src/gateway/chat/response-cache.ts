import { withTimeout } from "../../lib/with-timeout.ts";
import type { Logger } from "../../observe/logger.ts";
import type { RedisConnections } from "../../store/redis/redis.ts";
import type { CachedResponse } from "./outcome.ts";

/** Longest wait for Redis on the way to a model, in ms; then the model is asked. */
const LOOKUP_TIMEOUT_MS = 100;
/** Stands for a Redis that does not answer in time, which is no failure. */
const tooLate = new Error("Redis did not answer in time");
/** After a failure nothing is looked up for this long, in ms. */
const PAUSE_MS = 1_000;
/** Larger answers are not kept, in characters of their JSON. */
const MAX_CHARACTERS = 256 << 10;
/** What Redis needs beside an answer's text, for its key and for the account of it, in bytes. */
const BYTES_BESIDE_TEXT = 512;

export type ResponseCache = ReturnType<typeof makeResponseCache>;

/** A response to be kept. */
type Kept = { tenantId: string; key: string; response: CachedResponse; ttlSeconds: number };

type ResponseCacheDeps = {
  redis: Pick<RedisConnections, "producer" | "prefix">;
  logger: Logger;
  /** Maximum bytes of one tenant's answers. */
  bytesPerTenant: number;
};

/**
 * Keeps an answer within the bytes of its tenant, in one step. `ends` has the tenant's answers by the time of their end,
 * `sizes` the bytes of each and their total; both expire with the last answer. Expired answers end first, so that they are
 * the first to leave. A few of them leave at each call, which keeps the account small.
 */
const keepScript = `
local ends, sizes, response = KEYS[1], KEYS[2], KEYS[3]
local prefix, key, text = ARGV[1], ARGV[2], ARGV[3]
local size, ttl, room = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function drop(one)
  local taken = redis.call('HGET', sizes, one)
  redis.call('HDEL', sizes, one)
  redis.call('ZREM', ends, one)
  if taken then redis.call('HINCRBY', sizes, 'total', -taken) end
end
for _, one in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, 20)) do drop(one) end
drop(key)
while tonumber(redis.call('HGET', sizes, 'total') or 0) + size > room do
  local first = redis.call('ZRANGE', ends, 0, 0)[1]
  if not first then break end
  drop(first)
  redis.call('DEL', prefix .. first)
end
redis.call('SET', response, text, 'PX', ttl)
redis.call('ZADD', ends, now + ttl, key)
redis.call('HSET', sizes, key, size)
redis.call('HINCRBY', sizes, 'total', size)
if redis.call('PTTL', ends) < ttl then redis.call('PEXPIRE', ends, ttl) end
if redis.call('PTTL', sizes) < ttl then redis.call('PEXPIRE', sizes, ttl) end
`;

/** Answers in Redis, by a hash of tenant, model and request. Redis may be unavailable, and may forget them at any time. */
export function makeResponseCache({ redis, logger, bytesPerTenant }: ResponseCacheDeps) {
  const keyPrefix = `${redis.prefix}:answers:`;
  const toRedisKey = (key: string) => `${keyPrefix}${key}`;
  let pausedUntil = 0;
  const onError = (error: unknown) => {
    pausedUntil = performance.now() + PAUSE_MS;
    logger.warn({ err: error }, "the cache of answers is not used until Redis answers");
  };
  return {
    /** Returns null if there is no answer, or if Redis does not respond in time. Never throws. */
    async get(key: string): Promise<CachedResponse | null> {
      if (performance.now() < pausedUntil) return null;
      try {
        const text = await withTimeout(redis.producer.get(toRedisKey(key)), LOOKUP_TIMEOUT_MS, () => tooLate);
        return text === null ? null : JSON.parse(text); // written by `put` alone
      } catch (error) {
        if (error !== tooLate) onError(error);
        return null;
      }
    },
    /** Stores an answer after the call; it may be lost. The tenant's answers that expire first are removed to make room. */
    put({ tenantId, key, response, ttlSeconds }: Kept): void {
      const text = JSON.stringify(response);
      if (text.length > MAX_CHARACTERS || performance.now() < pausedUntil) return;
      const bytes = Buffer.byteLength(text) + BYTES_BESIDE_TEXT;
      if (bytes > bytesPerTenant) return;
      const keys = [`${redis.prefix}:answer-ends:${tenantId}`, `${redis.prefix}:answer-sizes:${tenantId}`];
      const given = [keyPrefix, key, text, bytes, ttlSeconds * 1_000, bytesPerTenant];
      redis.producer.eval(keepScript, 3, ...keys, toRedisKey(key), ...given).catch(onError);
    },
  };
}
