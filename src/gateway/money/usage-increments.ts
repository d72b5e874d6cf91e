import { LRUCache } from "lru-cache";
import type { CompletionRecord } from "../../store/completion-store.ts";
import { type BucketCounts, bucketOf } from "../../store/latency-buckets.ts";
import type { UsageCounters, UsageIncrement } from "../../store/usage-store.ts";
import type { CompletionRequest } from "../providers/provider.ts";

const HOUR_MS = 3_600_000;
/** Maximum rows of a tenant in an hour, and end users in a day, that a process counts separately. All others share one row. */
const HOURLY_ROWS = 200;
const DAILY_END_USERS = 1_000;
/** Maximum tenants whose names a process remembers. */
const MAX_TENANTS = 500;
/** Longest name of an end user, in characters. */
const MAX_END_USER = 64;

export type UsageIncrements = ReturnType<typeof makeUsageIncrements>;

/** Sums the records of a batch as usage counts them. Remembers which names each tenant has had. */
export function makeUsageIncrements() {
  const rowOf = makeFirstNames({ names: HOURLY_ROWS, tenants: MAX_TENANTS, periodMs: HOUR_MS });
  const endUserOf = makeFirstNames({ names: DAILY_END_USERS, tenants: MAX_TENANTS, periodMs: 24 * HOUR_MS });
  const placeOf = (record: CompletionRecord) => {
    const { tenantId, model, surface, keyId, endUser } = record;
    const time = record.createdAt.getTime();
    const iso = record.createdAt.toISOString();
    const hour = iso.slice(0, 13);
    const isOther = rowOf(tenantId, JSON.stringify([model, surface, keyId]), time) === OTHER;
    const names = isOther ? { model: OTHER, surface: OTHER, keyId: OTHER } : { model, surface, keyId };
    const place = { tenantId, day: iso.slice(0, 10), model, surface, keyId, inHour: { hour, ...names } };
    return endUser === undefined ? place : { ...place, endUser: endUserOf(tenantId, endUser, time) };
  };
  return (batch: readonly CompletionRecord[]): UsageIncrement[] => {
    const sums = new Map<string, UsageIncrement & { times: BucketCounts }>();
    for (const record of batch) {
      const place = placeOf(record);
      const key = JSON.stringify(place);
      let sum = sums.get(key);
      if (sum === undefined) {
        const counters = { requests: 0, errors: 0, inputTokens: 0, outputTokens: 0, costNanoUsd: 0 };
        sum = { ...place, ...counters, times: {} };
        sums.set(key, sum);
      }
      addCall(sum, record);
    }
    return [...sums.values()];
  };
}

type Counts = UsageCounters & { times: BucketCounts };
type Counted = Pick<
  CompletionRecord,
  "outcome" | "costNanoUsd" | "isCached" | "isBatched" | "inputTokens" | "outputTokens" | "durationMs" | "firstTokenMs"
>;

/** Adds what usage counts of a call. */
export function addCall(sum: Counts, record: Counted): void {
  sum.requests++;
  if (record.outcome === "failed") sum.errors++;
  sum.costNanoUsd += record.costNanoUsd;
  if (record.isCached) return; // only what a provider served is counted and timed
  sum.inputTokens += record.inputTokens;
  sum.outputTokens += record.outputTokens;
  if (record.outcome !== "completed" || record.isBatched) return;
  count(sum.times, bucketOf("ms", record.durationMs));
  if (record.firstTokenMs !== undefined) count(sum.times, bucketOf("firstMs", record.firstTokenMs));
}

function count(times: BucketCounts, bucket: string): void {
  times[bucket] = (times[bucket] ?? 0) + 1;
}

/** The end user that a chat's body names; undefined if it names none. */
export function endUserOf({
  safetyIdentifier,
  user,
}: Pick<CompletionRequest, "safetyIdentifier" | "user">): string | undefined {
  const name = (safetyIdentifier ?? user)?.slice(0, MAX_END_USER).toWellFormed().trim();
  return name === "" ? undefined : name;
}

/** The name under which all further names are counted. */
const OTHER = "other";

/**
 * Lets each tenant have at most `names` names in a period, in one process, those that come first: each may be a kept row.
 * `tenants` are remembered; one that is forgotten starts over.
 */
export function makeFirstNames(limits: { names: number; tenants: number; periodMs: number }) {
  const known = new LRUCache<string, { period: number; names: Set<string> }>({ max: limits.tenants });
  /** The name itself, or `other`, for an event at a time in ms. */
  return (tenantId: string, name: string, time: number): string => {
    const period = Math.floor(time / limits.periodMs);
    let current = known.get(tenantId);
    if (current?.period !== period) {
      current = { period, names: new Set() };
      known.set(tenantId, current);
    }
    if (current.names.size >= limits.names && !current.names.has(name)) return OTHER;
    current.names.add(name);
    return name;
  };
}
