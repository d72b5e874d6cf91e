import { close, fdatasync, fdatasyncSync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";

/** Waits until commits are on the disk. */
export type LogSync = ReturnType<typeof openLogSync>;

export type LogSyncOptions = {
  /** Waits until what the file has is on the disk; another one in tests. */
  sync?: (file: number, callback: (error: Error | null) => void) => void;
  /** The disk has failed. What was committed may or may not be on it, and no later call would say so. */
  onFailure: (error: Error) => void;
};

/**
 * Makes commits durable against a loss of power, as `synchronous = FULL` would, without holding up the loop: the log is
 * synced in libuv's thread pool. Whatever is committed while one call runs shares the next one. The log is one file, written
 * in order, so a commit that is on the disk has all earlier ones before it. Open it while the store is open.
 * https://www.sqlite.org/wal.html, https://man7.org/linux/man-pages/man2/fdatasync.2.html
 */
export function openLogSync(dataFile: string, { sync = fdatasync, onFailure }: LogSyncOptions) {
  const file = openSync(`${dataFile}-wal`, "r+");
  syncFolderOf(dataFile);
  let waiting: (() => void)[] = [];
  let inSync: (() => void)[] = [];
  let isSyncing = false;
  let isClosed = false;
  let hasFailed = false;
  const settle = () => {
    const done = inSync;
    inSync = [];
    for (const work of done) work();
  };
  const next = () => {
    if (isClosed) close(file);
    isSyncing = waiting.length > 0 && !isClosed;
    if (!isSyncing) return;
    inSync = waiting;
    waiting = [];
    sync(file, (error) => {
      if (error) {
        hasFailed = true;
        return onFailure(error);
      }
      settle();
      next();
    });
  };
  return {
    /** Calls `work` once everything that is committed by now is on the disk. Calls keep their order. */
    after(work: () => void): void {
      waiting.push(work);
      if (!isSyncing) next();
    },
    /** Waits for the disk here, and then calls all that waits; nothing of it after a failure. */
    drain(): void {
      if (hasFailed) return;
      fdatasyncSync(file);
      inSync.push(...waiting.splice(0));
      settle();
    },
    close(): void {
      isClosed = true;
      if (!isSyncing) next(); // else the file is closed when its last call has returned
    },
  };
}

/** The names of a store's files are on the disk too. */
function syncFolderOf(dataFile: string): void {
  const folder = openSync(dirname(dataFile), "r");
  fsyncSync(folder);
  close(folder);
}
