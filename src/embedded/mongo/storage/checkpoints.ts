import { DatabaseSync } from "node:sqlite";
import { parentPort, Worker, workerData } from "node:worker_threads";
import type { Logger } from "../../../observe/logger.ts";
import { prepareRows, type Storage } from "./storage.ts";

/** Pages of the log, of 4 KiB each, that wait when the thread's copy begins. */
const COPY_FROM_PAGES = 2_000;
/** From LOG_PAGES on, the log is restarted once few pages wait to be copied; from MAX_LOG_PAGES on, however many wait. */
const [LOG_PAGES, FEW_PAGES, MAX_LOG_PAGES] = [16_000, 500, 64_000];
/** How often the log is looked at, and how long it is left alone after a copy here, or one that failed, in ms, at least. */
const [LOOK_EVERY_MS, PAUSE_MS] = [20, 1_000];

/**
 * Copies the write-ahead log into the data file, in a thread with a connection of its own: a copy waits for the disk, and
 * would hold up every command. Only the last few pages are copied here, between two commits; then SQLite writes the log from
 * its start again. The log has 250 MiB, and what comes in a second, at most, unless another program reads the data file all
 * that time. Returns how to stop. https://www.sqlite.org/wal.html#avoiding_excessively_large_wal_files
 */
export function startCheckpoints(storage: Storage, dataFile: string, logger: Logger): () => Promise<void> {
  const { sqlite } = storage;
  sqlite.exec("PRAGMA wal_autocheckpoint = 0");
  const look = prepareRows(sqlite, "PRAGMA wal_checkpoint(NOOP)");
  const copyHere = sqlite.prepare("PRAGMA wal_checkpoint(PASSIVE)");
  let thread: Worker | undefined;
  let isCopying = false;
  let nextLookAt = 0;
  const pauseFor = (ms: number) => {
    nextLookAt = performance.now() + ms;
  };
  const end = (err?: unknown) => {
    isCopying = false;
    pauseFor(err === undefined ? 0 : PAUSE_MS);
    if (err !== undefined) logger.warn({ err }, "the log of the embedded store could not be copied");
  };
  const startThread = () => {
    const started = new Worker(new URL(import.meta.url), { workerData: { checkpointsOf: dataFile } });
    started.unref();
    started.on("message", end);
    started.on("error", (error) => {
      thread = undefined;
      end(error);
    });
    return started;
  };
  const copy = () => {
    const [, pages, copied] = look.get() as unknown as [number, number, number]; // prepared to give arrays
    const waiting = pages - copied;
    if (pages > MAX_LOG_PAGES || (pages > LOG_PAGES && waiting < FEW_PAGES)) {
      pauseFor(PAUSE_MS);
      copyHere.get();
    } else if (pages > LOG_PAGES || waiting >= COPY_FROM_PAGES) {
      isCopying = true;
      thread ??= startThread();
      thread.postMessage("copy");
    }
  };
  storage.listeners.push(() => {
    if (isCopying || performance.now() < nextLookAt) return;
    pauseFor(LOOK_EVERY_MS);
    try {
      copy();
    } catch (error) {
      end(error);
    }
  });
  return async () => {
    await thread?.terminate();
  };
}

/** The thread: copies at each message, and answers what went wrong, or nothing. */
function serve(dataFile: string): void {
  const copy = new DatabaseSync(dataFile).prepare("PRAGMA wal_checkpoint(PASSIVE)");
  parentPort?.on("message", () => {
    try {
      copy.get();
      parentPort?.postMessage(undefined);
    } catch (error) {
      parentPort?.postMessage(error);
    }
  });
}

if (workerData?.checkpointsOf) serve(workerData.checkpointsOf);
