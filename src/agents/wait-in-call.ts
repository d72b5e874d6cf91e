import { setTimeout as delay } from "node:timers/promises";
import type { WaitRequest } from "../jobs/waits.ts";
import { defined } from "../lib/defined.ts";
import { derivedId } from "../lib/ids.ts";
import type { AgentRunRecord } from "../store/agent-run-store.ts";
import type { WaitRecord } from "../store/wait-store.ts";
import type { AgentsDeps } from "./deps.ts";
import { CallSuspended } from "./run-state.ts";

/** The longest wait of a call, in ms: 30 days. */
export const MAX_WAIT_MS = 30 * 86_400_000;
/** A shorter wait for a time, in ms, takes less than to suspend a job and to resume it. */
const HELD_MS = 50;

type Call = { idempotencyKey: string; signal: AbortSignal };

/**
 * Waits inside of a tool call; the record of it is the call's, so that a repeated attempt waits for the same. Returns how it has
 * ended; undefined for a wait so short that it has no record. @throws CallSuspended while it has not.
 */
export async function waitInCall(
  { deps, run }: { deps: Pick<AgentsDeps, "waits">; run: AgentRunRecord },
  { idempotencyKey, signal }: Call,
  { until, event }: Pick<WaitRequest, "until" | "event">,
): Promise<WaitRecord | undefined> {
  const { tenantId, jobId, createdAt } = run;
  const waitId = derivedId("wait", { at: createdAt, from: idempotencyKey });
  const leftMs = until.getTime() - Date.now();
  if (event === undefined && leftMs <= HELD_MS) {
    await delay(Math.max(0, leftMs), undefined, { signal });
    return undefined;
  }
  const wait = await deps.waits.begin({ tenantId, jobId, waitId, until, ...defined({ event }) });
  if (wait.status !== "pending") return wait;
  const about = defined({ kind: event ? ("event" as const) : ("time" as const), event: event?.name });
  throw new CallSuspended([{ ...about, runId: run._id, until: wait.expiresAt }], deps.waits.isOver([wait]));
}
