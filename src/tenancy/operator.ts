import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { LRUCache } from "lru-cache";
import { AppError } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import type { OperatorSessionStore } from "../store/session-store.ts";
import { makeSecret } from "./api-keys.ts";

/** How long a session lasts, in ms. */
const SESSION_MS = 12 * 3_600_000;
/** Sessions at once; a further one ends the oldest. */
const MAX_SESSIONS = 20;
/** Wrong passwords, and unknown sessions, that one address may try in a minute, at each process. */
const MAX_WRONG = 20;
const WRONG_MS = 60_000;
/** Addresses that are remembered. */
const MAX_ADDRESSES = 10_000;

const tokenPattern = /^[0-9A-Za-z]{32}$/;

export type Operator = ReturnType<typeof makeOperator>;

/**
 * Who runs the service, by the setting `ADMIN_TOKEN`, or by a session that it opened. What is stored of a session is made of
 * its token and of the password, so that a new password ends all of them.
 */
export function makeOperator({ password, sessions }: { password: string | undefined; sessions: OperatorSessionStore }) {
  const attempts = new LRUCache<string, { wrong: number }>({ max: MAX_ADDRESSES, ttl: WRONG_MS });
  const hashOf = (token: string) =>
    createHmac("sha256", password ?? "")
      .update(token)
      .digest("hex");
  /** Only wrong attempts are paced: behind a proxy one address may be everybody's, the operator's too. */
  const attempt = async (address: string, isRight: () => boolean | Promise<boolean>): Promise<boolean> => {
    if (password !== undefined && (await isRight())) return true;
    const attempted = attempts.get(address) ?? { wrong: 0 };
    if (attempted.wrong >= MAX_WRONG) throw tooMany(attempts.getRemainingTTL(address));
    attempted.wrong += 1;
    if (attempted.wrong === 1) attempts.set(address, attempted);
    return false;
  };
  return {
    /** Whether the service has an operator at all. */
    isSet: password !== undefined,
    /** @throws AppError `rate_limited` for a wrong password of an address that was wrong too often. */
    isPassword: (given: string, address: string) => attempt(address, () => isSame(given, password ?? "")),
    /** Whether a session of this token is open. @throws as `isPassword`. */
    hasSession: (token: string, address: string) =>
      attempt(address, async () => tokenPattern.test(token) && (await sessions.has(hashOf(token), new Date()))),
    /** Opens a session; its token is returned here only. */
    async open(): Promise<{ token: string; expiresAt: Date }> {
      const token = makeSecret();
      const createdAt = new Date();
      const expiresAt = new Date(createdAt.getTime() + SESSION_MS);
      await sessions.insert({ _id: newId("session"), hash: hashOf(token), createdAt, expiresAt }, MAX_SESSIONS);
      return { token, expiresAt };
    },
    /** Ends a session, if it is one. */
    async close(token: string): Promise<void> {
      if (tokenPattern.test(token)) await sessions.remove(hashOf(token));
    },
  };
}

/** Compares in a time that reveals neither the length nor where the two differ. */
function isSame(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}

function tooMany(retryAfterMs: number): AppError {
  const message = "Too many wrong passwords came from your address; try again in a minute.";
  return new AppError("rate_limited", message, { retryable: true, retryAfterMs });
}
