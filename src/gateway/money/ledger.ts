import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { jittered } from "../../lib/jitter.ts";
import type { Logger } from "../../observe/logger.ts";
import type { CompletionRecord, CompletionStore } from "../../store/completion-store.ts";
import type { Store } from "../../store/store.ts";
import { isStoreRejection } from "../../store/store-errors.ts";
import type { UsageStore } from "../../store/usage-store.ts";
import type { UsageIncrements } from "./usage-increments.ts";

/** Records wait at most this long for others to be written with, in ms; with the write they are settled within 50. */
const GATHER_MS = 40;
/** Most records of one write. */
const MAX_BATCH = 500;
/** Records kept while the store is unavailable; beyond it the oldest are given up, and logged. */
const MAX_PENDING = 50_000;
/** Waits between attempts at a write, in ms. */
const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;
/** Attempts at a write while closing. */
const ATTEMPTS_AT_CLOSE = 3;

export type Ledger = ReturnType<typeof makeLedger>;

type LedgerDeps = {
  completions: Pick<CompletionStore, "insertMany" | "keep">;
  usage: UsageStore;
  toIncrements: UsageIncrements;
  checkWrites: Store["checkWrites"];
  logger: Logger;
  /** Counts a record. One that is written again after a crash is counted again; the ledger has it once. */
  onSettled: (call: CompletionRecord) => void;
};

/** Writes what model calls cost, in groups and behind the calls: the hot path does not wait for the store. */
export function makeLedger({ completions, usage, toIncrements, checkWrites, logger, onSettled }: LedgerDeps) {
  const waiting = new Map<string, CompletionRecord>();
  const writer = `w${randomBytes(6).toString("hex")}`;
  let batches = 0;
  let timer: NodeJS.Timeout | undefined;
  let isClosing = false;
  let isRejected = false;
  const noted = async <T>(written: Promise<T>) => {
    try {
      return await written;
    } catch (error) {
      isRejected ||= isStoreRejection(error);
      throw error;
    }
  };

  const write = async (batch: readonly CompletionRecord[]) => {
    const [number, increments] = [++batches, toIncrements(batch)]; // computed once, since each attempt must add the same
    for (let attempts = 1; ; attempts++) {
      try {
        // The records first: a process that is killed in between leaves a call uncounted, and none counted without a record.
        await noted(completions.insertMany(batch));
        await noted(usage.add({ writer, number }, increments));
        return;
      } catch (error) {
        logger.warn({ err: error, records: batch.length, attempts }, "The ledger could not be written");
        if (isClosing && attempts >= ATTEMPTS_AT_CLOSE) {
          logger.error(
            { records: batch.length },
            "Ledger records are lost: the store did not take them before the end",
          );
          return;
        }
        await delay(jittered(Math.min(FIRST_RETRY_MS * 2 ** (attempts - 1), MAX_RETRY_MS)));
      }
    }
  };
  const writeWaiting = async () => {
    for (let left = waiting.size; left > 0; ) {
      const batch = waiting.values().take(Math.min(left, MAX_BATCH)).toArray();
      await write(batch);
      for (const { _id } of batch) waiting.delete(_id);
      left -= batch.length;
    }
  };
  const takeTurn = makeTurns(writeWaiting);
  /**
   * Writes the waiting records. Records that arrive during a write wait for the next one, since many small writes cost more.
   */
  const start = () => {
    clearTimeout(timer);
    timer = undefined;
    return takeTurn();
  };
  return {
    record(document: CompletionRecord): void {
      if (waiting.size >= MAX_PENDING) {
        const oldest = waiting.keys().next().value;
        if (oldest !== undefined) waiting.delete(oldest);
        logger.error({ logId: oldest }, "A ledger record is lost: too many wait for the store");
      }
      waiting.set(document._id, document);
      timer ??= setTimeout(start, GATHER_MS);
      setImmediate(onSettled, document); // after this turn: no answer waits for its metrics
    },
    /** Writes a record at once, exactly once however often it is written: what was written first holds. */
    async write(document: CompletionRecord): Promise<void> {
      const kept = await noted(completions.keep(document));
      for (const increment of toIncrements([kept])) await noted(usage.addRecord(kept._id, increment));
      onSettled(document);
    },
    /**
     * To be called before what costs money. Once the store has refused a record, it resolves when the store takes writes.
     * @throws AppError `storage_full`, `store_read_only`, `unavailable`.
     */
    async requireTaken(): Promise<void> {
      if (!isRejected) return;
      await checkWrites();
      isRejected = false;
    },
    /** The record of a call, if it waits to be written. */
    pending: (logId: string) => waiting.get(logId),
    /** Resolves when all that was recorded before is written, or given up after a few attempts. */
    flush: start,
    async close(): Promise<void> {
      isClosing = true;
      do await start();
      while (waiting.size > 0);
    },
  };
}

/** Runs `run` at each request, one at a time; requests that come while it runs share the next one. */
function makeTurns(run: () => Promise<void>): () => Promise<void> {
  let running = Promise.resolve();
  let next: Promise<void> | undefined;
  return () => {
    next ??= running.then(() => {
      next = undefined;
      running = run();
      return running;
    });
    return next;
  };
}
