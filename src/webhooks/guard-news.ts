import { setTimeout as delay } from "node:timers/promises";
import type { GuardCount } from "../guards/rules.ts";
import { addCounts } from "../guards/rules.ts";
import { defined } from "../lib/defined.ts";
import { newId } from "../lib/ids.ts";
import { currentRequestId } from "../net/call-scope.ts";
import type { Logger } from "../observe/logger.ts";
import type { GuardedCaller } from "../tenancy/guard-policies.ts";
import { announce } from "./announcements.ts";

/** What one caller's guards block within this time is one message, in ms. */
const GATHER_MS = 1_000;
/** Callers of whom something is gathered; what else is blocked meanwhile is not told. */
const MAX_GATHERED = 2_000;

type Blocked = { caller: GuardedCaller; requestId: string | undefined; at: Date; calls: number; found: GuardCount[] };

/**
 * Tells webhooks what guards do not let through: by whom, and how many values of a kind at which place, never the values. What is
 * gathered when a process dies is not told.
 */
export function makeGuardNews(deps: Parameters<typeof announce>[0] & { logger: Logger }) {
  const gathered = new Map<string, Blocked>();
  const closing = new AbortController();
  let writing: Promise<void> | undefined;
  const write = async () => {
    await delay(GATHER_MS, undefined, { signal: closing.signal }).catch(() => undefined); // the rest is written at once
    const all = [...gathered.values()];
    gathered.clear();
    writing = undefined;
    for (const { caller, requestId, at, calls, found } of all) {
      const { tenantId, ...who } = caller;
      const data = defined({ ...who, requestId, calls, found });
      await announce(deps, { tenantId, type: "guard.blocked", about: newId("event"), at, data }).catch(
        (err: unknown) => {
          deps.logger.warn({ err, tenantId }, "webhooks are not told of what guards have blocked");
        },
      );
    }
  };
  return {
    /** Notes what was blocked; it waits for nothing. */
    blocked(caller: GuardedCaller, found: readonly GuardCount[]): void {
      const { tenantId, keyId, agentId, workflowId } = caller;
      const requestId = currentRequestId();
      const key = JSON.stringify([tenantId, keyId, agentId, workflowId, requestId]);
      const known = gathered.get(key);
      if (known) {
        known.calls += 1;
        addCounts(known.found, found);
        return;
      }
      if (gathered.size >= MAX_GATHERED) return;
      const who = defined({ tenantId, keyId, agentId, workflowId });
      gathered.set(key, { caller: who, requestId, at: new Date(), calls: 1, found: structuredClone([...found]) });
      writing ??= write();
    },
    /** Writes what is gathered. */
    async close(): Promise<void> {
      closing.abort();
      await writing;
    },
  };
}
