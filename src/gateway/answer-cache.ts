import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "../logger.ts";
import type { RedisConnections } from "../redis.ts";
import type { FinishReason, ToolCall, Usage } from "./providers/provider.ts";

/** Longest wait for Redis on the way to a model, in ms; then the model is asked. */
const LOOKUP_TIMEOUT_MS = 100;
/** After a failure nothing is looked up for so long, in ms. */
const PAUSE_MS = 1_000;
/** Larger answers are not kept, in characters of their JSON. */
const MAX_CHARACTERS = 256 << 10;

/** An answer that may be given again. */
export type KeptAnswer = {
  text: string;
  reasoning?: string;
  toolCalls: ToolCall[];
  finishReason: FinishReason;
  model: string;
  provider: string;
  usage: Usage;
};

export type AnswerCache = {
  /** Null when it is not there, or Redis does not say so in time. Never throws. */
  get(key: string): Promise<KeptAnswer | null>;
  /** Keeps an answer; nobody waits for it, and it does not matter when it is lost. */
  put(key: string, answer: KeptAnswer, ttlSeconds: number): void;
};

/** Answers in Redis, by a hash of tenant, model and request. Redis may be away, and may forget them at any time. */
export function makeAnswerCache(redis: Pick<RedisConnections, "producer" | "prefix">, logger: Logger): AnswerCache {
  const toRedisKey = (key: string) => `${redis.prefix}:answers:${key}`;
  let pausedUntil = 0;
  const onError = (error: unknown) => {
    pausedUntil = performance.now() + PAUSE_MS;
    logger.warn({ err: error }, "the cache of answers is not used until Redis answers");
  };
  return {
    async get(key) {
      if (performance.now() < pausedUntil) return null;
      const timer = new AbortController();
      try {
        const text = await Promise.race([
          redis.producer.get(toRedisKey(key)),
          delay(LOOKUP_TIMEOUT_MS, undefined, { signal: timer.signal, ref: false }),
        ]);
        return typeof text === "string" ? JSON.parse(text) : null; // written by `put` alone
      } catch (error) {
        onError(error);
        return null;
      } finally {
        timer.abort();
      }
    },
    put(key, answer, ttlSeconds) {
      const text = JSON.stringify(answer);
      if (text.length > MAX_CHARACTERS || performance.now() < pausedUntil) return;
      redis.producer.set(toRedisKey(key), text, "EX", ttlSeconds).catch(onError);
    },
  };
}
