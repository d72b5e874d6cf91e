import type { Config } from "../config/config.ts";
import { AppError, notFound } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import { makeStaleWhileRevalidate } from "../lib/stale-while-revalidate.ts";
import type { Logger } from "../observe/logger.ts";
import type { ApiKeyRecord } from "../store/key-store.ts";
import type { RedisConnections } from "../store/redis/redis.ts";
import type { Store } from "../store/store.ts";
import { unlessDuplicate } from "../store/writes.ts";
import { makeAccessTokens } from "./access-tokens.ts";
import { hashApiKey, isApiKey, isUsable, makeApiKey, type NewApiKey, toApiKeyDocument, toCaller } from "./api-keys.ts";
import { makeCallerCache } from "./caller-cache.ts";
import { makeRateLimits } from "./limits.ts";
import type { Caller } from "./roles.ts";
import { makeSessions } from "./sessions.ts";
import { isWidgetKey, makeWidgetKeys } from "./widget-keys.ts";

/** The tenant of the bootstrap key. */
const defaultTenantName = "default";

export type Tenancy = ReturnType<typeof makeTenancy>;

type TenancyDeps = {
  config: Config;
  store: Pick<Store, "apiKeys" | "sessions" | "tenants" | "widgetKeys">;
  redis: Pick<RedisConnections, "producer" | "prefix">;
  logger: Logger;
};

/** Tenants, their keys and their limits. */
export function makeTenancy({ config, store, redis, logger }: TenancyDeps) {
  const callers = makeCallerCache({
    tenants: store.tenants,
    findByHashes: store.apiKeys.findByHashes,
    toFound: (record) =>
      isUsable(record, new Date()) ? { caller: toCaller(record), expiresAt: record.expiresAt?.getTime() } : null,
  });
  const limits = makeRateLimits({ config: config.limits, redis, logger });
  const sessions = makeSessions(store);
  const widgetKeys = makeWidgetKeys(store);
  const callerOfToken = makeAccessTokens({ config, tenants: store.tenants });
  const keyUse = makeKeyUse({ apiKeys: store.apiKeys, logger });
  const widgetLimits = {
    visitor: makeRateLimits({ config: config.limits.widget, redis, logger }),
    share: makeRateLimits({ config: config.limits.widgetShare, redis, logger }),
  };

  const ensureTenant = async (name: string) => {
    const tenant = await store.tenants.ensure({ _id: newId("tenant"), name, createdAt: new Date() });
    return tenant._id;
  };

  return {
    limits,
    /** The id of the tenant of this name, which is created if it does not exist. */
    ensureTenant,
    /** The name of a tenant. @throws AppError `not_found`. */
    async nameOf(tenantId: string): Promise<string> {
      const tenant = await store.tenants.find(tenantId);
      if (!tenant) throw notFound("tenant");
      return tenant.name;
    },
    /** The id of the tenant of this name. @throws AppError `not_found`. */
    async findTenant(name: string): Promise<string> {
      const tenant = await store.tenants.findByName(name);
      if (!tenant) throw notFound("tenant");
      return tenant._id;
    },
    /** Sessions of browsers. */
    sessions,
    /** Publishable keys that only chat. */
    widgetKeys,
    /** Limits of a widget key at one address, and of all widget keys of a root's tenants together, besides the root's. */
    widgetLimits,
    /**
     * The caller of this key or access token; null when it is unknown, expired or revoked. Never older than 5 s. `address`: the
     * client's, which bounds how many keys it may try. @throws AppError `rate_limited` for a key that is new here, beyond that bound.
     */
    async authenticate(key: string, address?: () => string): Promise<Caller | null> {
      if (!isApiKey(key)) return isWidgetKey(key) ? widgetKeys.authenticate(key, address) : callerOfToken(key);
      const caller = await callers.find(key, address);
      if (caller) keyUse.note(caller.keyId);
      return caller;
    },
    /** Whether a key may be used still; undefined for one that has no record, as that of an access token. Never older than 5 s. */
    isUsableKey: makeUsableKeys(store),
    /** Makes a key, which is returned here only. */
    async createKey(given: NewApiKey): Promise<{ key: string; record: ApiKeyRecord }> {
      const key = makeApiKey();
      const record = toApiKeyDocument(key, given);
      await store.apiKeys.insert(record);
      return { key, record };
    },
    /** The usable and expired keys of a tenant, newest first. */
    listKeys: store.apiKeys.list,
    /** @throws AppError `not_found`, or `wrong_state` for the last usable owner's key. */
    async revokeKey(tenantId: string, keyId: string): Promise<void> {
      const otherOwners = await store.apiKeys.countUsable(tenantId, { role: "owner", exceptId: keyId, at: new Date() });
      if (otherOwners === 0) {
        throw new AppError("wrong_state", "This is the last owner's key of the tenant; make another one first.");
      }
      const revoked = await store.apiKeys.revoke(tenantId, keyId, new Date());
      if (!revoked) throw notFound("key");
      callers.forget(keyId);
      await sessions.closeOf(tenantId, keyId);
      logger.info({ tenantId, keyId }, "a key was revoked");
    },
    /** Makes `key` an owner's key of the tenant `default`, unless it exists. */
    async ensureBootstrapKey(key: string): Promise<void> {
      if ((await store.apiKeys.findByHashes([hashApiKey(key)])).length > 0) return;
      const tenantId = await ensureTenant(defaultTenantName);
      const record = toApiKeyDocument(key, { tenantId, role: "owner", subject: "bootstrap" });
      await unlessDuplicate(store.apiKeys.insert(record)); // another process may be first
    },
    /** Writes when keys were used last; happens once a minute by itself. */
    writeKeyUse: keyUse.write,
    close: async () => {
      for (const each of [limits, widgetLimits.visitor, widgetLimits.share]) each.close();
      await keyUse.close();
    },
  };
}

function makeUsableKeys({ apiKeys }: Pick<Store, "apiKeys">) {
  const usable = makeStaleWhileRevalidate(async (key) => {
    const [tenantId = "", keyId = ""] = key.split(" ");
    const record = await apiKeys.get(tenantId, keyId);
    return { isUsable: record ? isUsable(record, new Date()) : undefined };
  });
  return async (tenantId: string, keyId: string): Promise<boolean | undefined> =>
    (await usable.find(`${tenantId} ${keyId}`)).isUsable;
}

/** The uses of keys are written together, this often, in ms. */
const WRITE_MS = 60_000;
/** Keys of one write. */
const MAX_WRITTEN = 1_000;

/** Notes when keys are used: of each key one write a minute at most, and none on the path of a call. */
function makeKeyUse({ apiKeys, logger }: Pick<Store, "apiKeys"> & { logger: Logger }) {
  let used = new Set<string>();
  const write = async () => {
    const keyIds = [...used];
    used = new Set();
    for (let at = 0; at < keyIds.length; at += MAX_WRITTEN) {
      await apiKeys.noteUse(keyIds.slice(at, at + MAX_WRITTEN), new Date());
    }
  };
  // One that is lost is of no consequence: the next use is noted again.
  const writeOrLog = () =>
    write().catch((error: unknown) => logger.debug({ err: error }, "uses of keys are not noted"));
  const timer = setInterval(writeOrLog, WRITE_MS).unref();
  return {
    note: (keyId: string) => void used.add(keyId),
    write,
    close: async () => {
      clearInterval(timer);
      await writeOrLog();
    },
  };
}
