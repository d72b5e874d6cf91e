import { newId } from "../lib/ids.ts";
import type { ApiKeyRecord } from "../store/key-store.ts";
import type { Store } from "../store/store.ts";
import { hashApiKey, isUsable, makeSecret, toCaller } from "./api-keys.ts";
import { makeCallerCache } from "./caller-cache.ts";
import type { Caller } from "./roles.ts";

/** How long a session lasts, in ms. */
const SESSION_MS = 12 * 3_600_000;
/** Sessions of one key; a further one ends the oldest. */
const MAX_SESSIONS = 20;

const tokenPattern = /^[0-9A-Za-z]{32}$/;

/** The key of a session, under the session's hash. */
type SessionKey = ApiKeyRecord & { sessionEnd: Date };
type Session = { token: string; expiresAt: Date };

/**
 * Sessions of browsers: a page exchanges a key for one, and does not hold the key any more. A session is the key's caller for
 * 12 hours, until it is closed or the key ends.
 */
export function makeSessions({ apiKeys, sessions, tenants }: Pick<Store, "apiKeys" | "sessions" | "tenants">) {
  /** The keys of sessions, each under its session's hash and not beyond its end. */
  const findKeys = async (hashes: readonly string[]): Promise<SessionKey[]> => {
    const found = await sessions.findByHashes(hashes);
    const keys = await apiKeys.findByHashes(found.map(({ keyHash }) => keyHash));
    const byHash = new Map(keys.map((key) => [key.hash, key]));
    return found.flatMap(({ hash, keyHash, expiresAt }) => {
      const key = byHash.get(keyHash);
      return key === undefined ? [] : [{ ...key, hash, sessionEnd: earlier(expiresAt, key.expiresAt) }];
    });
  };
  const callers = makeCallerCache({
    tenants,
    findByHashes: findKeys,
    toFound: (key) =>
      isUsable(key, new Date()) ? { caller: toCaller(key), expiresAt: key.sessionEnd.getTime() } : null,
  });
  return {
    /** The caller of this token; null when its session has ended. Never older than 5 s. @throws as `makeCallerCache`'s. */
    authenticate: async (token: string, address?: () => string): Promise<Caller | null> =>
      tokenPattern.test(token) ? callers.find(token, address) : null,
    /** Opens a session of a key; its token is returned here only. */
    async open({ tenantId, keyId }: Caller, key: string): Promise<Session> {
      const token = makeSecret();
      const now = new Date();
      const expiresAt = new Date(now.getTime() + SESSION_MS);
      const session = { tenantId, keyId, keyHash: hashApiKey(key), createdAt: now, expiresAt };
      await sessions.insert({ _id: newId("session"), hash: hashApiKey(token), ...session });
      await sessions.removeOld(tenantId, keyId, MAX_SESSIONS);
      return { token, expiresAt };
    },
    /** Ends a session, if it is one: here at once, in other processes within 5 s. */
    async close(token: string): Promise<void> {
      if (!tokenPattern.test(token)) return;
      await sessions.removeByHash(hashApiKey(token));
      callers.forgetKey(token);
    },
    /** Ends all sessions of a key that was revoked. */
    async closeOf(tenantId: string, keyId: string): Promise<void> {
      callers.forget(keyId);
      await sessions.removeOld(tenantId, keyId, 0);
    },
  };
}

const earlier = (a: Date, b: Date | undefined) => (b !== undefined && b < a ? b : a);
