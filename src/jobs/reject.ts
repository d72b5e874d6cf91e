import { setTimeout as delay } from "node:timers/promises";
import { toErrorView } from "../lib/errors.ts";
import { jittered } from "../lib/jitter.ts";
import type { JobRecord } from "../store/job-record.ts";
import type { JobStore } from "../store/job-store.ts";
import { NO_TENANT } from "../store/refused-jobs.ts";
import { endedNow } from "./claim.ts";

/** Waits between two attempts to write a rejection, in ms: doubles from the first to the last, with jitter. */
const RETRY_FROM_MS = 100;
const RETRY_TO_MS = 2_000;
/** How long the store may be unavailable before a refusal is given up, in ms. */
const GIVE_UP_AFTER_MS = 300_000;
/** Maximum rejections that wait for the store. Each holds a record of a few hundred bytes. */
const MAX_WAITING = 10_000;

/** How long the store keeps a refused job, in ms: longer than any write of it can be under way. No tenant finds it. */
const KEEP_REJECTED_MS = 86_400_000;

export type Rejections = ReturnType<typeof makeRejections>;

/**
 * Takes refused jobs back: they are never run, and their tenant does not see them. Their records stay for a day, since a store
 * that did not answer may have taken the record, or take it when it is back; so this is tried until the store has the last word.
 */
export function makeRejections(store: Pick<JobStore, "reject">, onError: (error: unknown) => void) {
  const controller = new AbortController();
  const { signal } = controller;
  const waiting = new Set<Promise<void>>();

  const write = (record: JobRecord, error: unknown) => {
    const expireAt = new Date(Date.now() + KEEP_REJECTED_MS);
    const end = { status: "failed", error: toErrorView(error), ...endedNow(), expireAt, tenantId: NO_TENANT } as const;
    return store.reject({ ...record, ...end }, record.status);
  };
  const retry = async (record: JobRecord, error: unknown) => {
    const deadline = performance.now() + GIVE_UP_AFTER_MS;
    for (let waitMs = RETRY_FROM_MS; !signal.aborted; waitMs = Math.min(waitMs * 2, RETRY_TO_MS)) {
      await delay(jittered(waitMs), undefined, { signal }).catch(() => undefined); // the signal was aborted
      if (signal.aborted) return;
      try {
        await write(record, error);
        return;
      } catch (cause) {
        if (performance.now() > deadline) return onError(cause);
      }
    }
  };
  /** As `refuse`, without waiting, for a store that did not answer just now. */
  const rejectLater = (record: JobRecord, error: unknown) => {
    if (waiting.size >= MAX_WAITING) return onError(error);
    const writing = retry(record, error).finally(() => waiting.delete(writing));
    waiting.add(writing);
  };
  return {
    rejectLater,
    /**
     * Closes the record of a job that could not be put on its queue. False if a worker has claimed it already: the enqueue
     * succeeded, and only its reply was lost. Resolves after the first attempt, whatever came of it.
     */
    async reject(record: JobRecord, error: unknown): Promise<boolean> {
      try {
        return await write(record, error);
      } catch {
        rejectLater(record, error); // the caller has an error to report already
        return true;
      }
    },
    /** Gives up what still waits. */
    async close(): Promise<void> {
      controller.abort();
      await Promise.all(waiting);
    },
  };
}
