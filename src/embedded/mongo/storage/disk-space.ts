import { randomFillSync } from "node:crypto";
import { existsSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { type CommandError, commandError } from "../command-error.ts";

/** Kept for deletions on a full disk, in bytes: as much as the write-ahead log usually holds before it is copied. */
const RESERVE_BYTES = 16 * 1024 * 1024;
/** How often a full disk is looked at again, in ms, at most. */
const LOOK_EVERY_MS = 500;
/** SQLite's codes; the last one stands for a write that failed for another reason, as a quota. */
const [SQLITE_READONLY, SQLITE_FULL, SQLITE_IOERR_WRITE] = [8, 13, 778];

/** Holds a reserve of the data file's disk in a file beside it, so that a store whose disk is full can still delete. */
export function watchDisk(sqlite: DatabaseSync, dataFile: string) {
  const path = `${dataFile}.reserve`;
  let isHeld = existsSync(path);
  let lookedAt = Number.NEGATIVE_INFINITY;
  /** Copies the log into the data file and gives its space back, unless writes are open or there is no room for it. */
  const truncateLog = () => {
    try {
      sqlite.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // The log stays as it is.
    }
  };
  /** Takes the reserve, or most of what there is, when the disk and the data file together have room for more than that. */
  const take = () => {
    lookedAt = performance.now();
    truncateLog();
    const { bavail, bsize } = statfsSync(dirname(path));
    const onDisk = bavail * bsize;
    const free = sqlite.prepare("SELECT freelist_count * page_size AS n FROM pragma_freelist_count, pragma_page_size");
    if (onDisk < RESERVE_BYTES / 2 || onDisk + Number(free.get()?.n) < RESERVE_BYTES * 1.25) return;
    const bytes = Buffer.alloc(Math.min(RESERVE_BYTES, Math.floor(onDisk * 0.75)));
    try {
      writeFileSync(path, randomFillSync(bytes), { mode: 0o600 }); // zeros may take no space
      isHeld = true;
    } catch {
      rmSync(path, { force: true });
    }
  };
  if (!isHeld) take();
  return {
    /** For writes that need more space. @throws CommandError 14031 from when the disk was full until it has room again. */
    requireRoom: () => {
      if (!isHeld && performance.now() - lookedAt > LOOK_EVERY_MS) take();
      if (!isHeld) throw diskFull();
    },
    /** What a failed write, undone by now, is to the client. On a full disk the reserve goes to what makes room. */
    toRejection: (error: unknown): CommandError | undefined => {
      const code = error instanceof Error && "errcode" in error ? Number(error.errcode) : 0;
      const cannotWrite = (code & 0xff) === SQLITE_READONLY || code === SQLITE_IOERR_WRITE;
      if (cannotWrite) return commandError("UserWritesBlocked", "the data file cannot be written");
      if ((code & 0xff) !== SQLITE_FULL) return undefined;
      isHeld = false;
      lookedAt = Number.NEGATIVE_INFINITY;
      rmSync(path, { force: true });
      truncateLog();
      return diskFull();
    },
  };
}

const diskFull = () => commandError("OutOfDiskSpace", "the disk of the data file is full");
