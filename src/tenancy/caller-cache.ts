import { setTimeout as delay } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { defined } from "../lib/defined.ts";
import { AppError } from "../lib/errors.ts";
import { makeStaleWhileRevalidate } from "../lib/stale-while-revalidate.ts";
import type { KeyRecord } from "../store/key-store.ts";
import type { TenantStore } from "../store/tenant-store.ts";
import { hashApiKey } from "./api-keys.ts";
import { makePlaces } from "./limits.ts";
import type { Caller } from "./roles.ts";

/** How long an unknown key is refused without asking the store again, in ms. */
const UNKNOWN_MS = 1_000;
/** Unknown keys have a cache of their own, so that a flood of guesses cannot push the known ones out. */
const MAX_UNKNOWN = 10_000;
/** Least time between two reads of keys, in ms: at most 40 a second, however many keys are asked for. */
const READ_GAP_MS = 25;
/** New keys that one address may have in the next read, and all addresses together. */
const NEW_KEYS_OF_ADDRESS = 64;
const NEW_KEYS = 512;
/** When a call with a new key is worth repeating, in ms. */
const RETRY_AFTER_MS = 1_000;

type Found = { caller: Caller; expiresAt: number | undefined };

const unknownKey = Symbol("unknown key");

/**
 * Callers by key, as fresh as `makeStaleWhileRevalidate` has them; `toFound` is null for a key that cannot be used. Keys that
 * were used here before take part in the next read whatever others ask for; keys that are new here have places by address, one a
 * key: calls with a key that is being read share that read.
 */
export function makeCallerCache<K extends KeyRecord>({
  tenants,
  findByHashes,
  toFound,
}: {
  tenants: Pick<TenantStore, "find">;
  findByHashes(hashes: readonly string[]): Promise<K[]>;
  toFound(record: K): Found | null;
}) {
  const unknown = new LRUCache<string, true>({ max: MAX_UNKNOWN, ttl: UNKNOWN_MS });
  const enter = { address: makePlaces(NEW_KEYS_OF_ADDRESS), all: makePlaces(NEW_KEYS) };
  const readRecord = gatherReads(
    async (hashes) => new Map((await findByHashes(hashes)).map((record) => [record.hash, record])),
    READ_GAP_MS,
  );
  const known = makeStaleWhileRevalidate<Found>(async (key) => {
    const record = await readRecord(hashApiKey(key));
    const found = record === undefined ? null : toFound(record);
    if (found) {
      const tenant = await tenants.find(found.caller.tenantId);
      return { ...found, caller: { ...found.caller, ...defined({ rootTenantId: tenant?.rootTenantId }) } };
    }
    known.forget(key);
    unknown.set(key, true);
    throw unknownKey; // so that it is not cached among the known ones
  });
  const toCaller = ({ caller, expiresAt }: Found) =>
    expiresAt !== undefined && expiresAt <= Date.now() ? null : caller;
  const find = async (key: string): Promise<Caller | null> => {
    try {
      return toCaller(await known.find(key));
    } catch (error) {
      if (error === unknownKey) return null;
      throw error;
    }
  };
  const findNew = async (key: string, address: string): Promise<Caller | null> => {
    const release = enter.address(address);
    const releaseAll = release && enter.all("");
    try {
      if (!releaseAll) throw tooManyNewKeys();
      return await find(key);
    } finally {
      release?.();
      releaseAll?.();
    }
  };
  return {
    /**
     * The caller of `key`, or null. `address`: whose places a new key takes; without it none.
     * @throws AppError `rate_limited` for a new key when the places of its address, or all, are taken.
     */
    async find(key: string, address?: () => string): Promise<Caller | null> {
      if (unknown.has(key)) return null;
      return address === undefined || known.has(key) ? find(key) : findNew(key, address());
    },
    /** Forgets the callers of a key that was revoked here. */
    forget: (keyId: string) => known.forgetWhere(({ caller }) => caller.keyId === keyId),
    /** Forgets the caller of this key. */
    forgetKey: (key: string) => known.forget(key),
  };
}

function tooManyNewKeys(): AppError {
  const message = "Too many keys that are new here are being checked, of your address or of all; try again.";
  return new AppError("rate_limited", message, { retryable: true, retryAfterMs: RETRY_AFTER_MS });
}

/**
 * Makes many reads of one kind few: one runs at a time, at least `gapMs` after the one before it began, and reads all keys
 * that were asked for since. A read that none precedes begins at once. The result is undefined for a key that is not found.
 */
function gatherReads<V>(readAll: (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>, gapMs: number) {
  let keys = new Set<string>();
  let next: Promise<ReadonlyMap<string, V>> | undefined;
  let isFree: Promise<unknown> = Promise.resolve();

  const readNext = async () => {
    await isFree;
    const gathered = [...keys];
    keys = new Set();
    next = undefined;
    const reading = readAll(gathered);
    isFree = Promise.allSettled([reading, delay(gapMs, undefined, { ref: false })]);
    return reading;
  };
  return async (key: string): Promise<V | undefined> => {
    keys.add(key);
    next ??= readNext();
    return (await next).get(key);
  };
}
