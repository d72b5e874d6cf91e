import { chmodSync, closeSync, existsSync, openSync } from "node:fs";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { lockFile } from "../../../lib/lock-file.ts";
import type { Document } from "../bson/bson-types.ts";
import { decodeDocument } from "../bson/codec.ts";
import { decodeFields } from "../bson/stored-fields.ts";
import { watchDisk } from "./disk-space.ts";

/** The open SQLite file, and the transaction that the commands of one turn of the event loop share. */
export type Storage = ReturnType<typeof openStorage>;

const pageCacheKiB = 64 * 1024;

const schema = `
  CREATE TABLE IF NOT EXISTS collections (
    id INTEGER PRIMARY KEY, db TEXT NOT NULL, name TEXT NOT NULL, options BLOB NOT NULL, uuid BLOB NOT NULL,
    UNIQUE (db, name)
  );
  CREATE TABLE IF NOT EXISTS indexes (
    id INTEGER PRIMARY KEY, collection INTEGER NOT NULL, name TEXT NOT NULL, spec BLOB NOT NULL,
    multikey INTEGER NOT NULL DEFAULT 0, UNIQUE (collection, name)
  );
  CREATE TABLE IF NOT EXISTS search_indexes (
    id INTEGER PRIMARY KEY, collection INTEGER NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
    definition BLOB NOT NULL, UNIQUE (collection, name)
  );
  CREATE TABLE IF NOT EXISTS large_fields (collection INTEGER, name TEXT, PRIMARY KEY (collection, name)) WITHOUT ROWID;
`;

/**
 * Opens the data file with a write-ahead log. `synchronous = NORMAL`: a commit survives the death of the process at any
 * moment. A loss of power may take the last commits with it, but never the file's consistency. With `syncWrites` it is `FULL`:
 * a commit ends once it is on the disk. A lock beside the file is held until it is closed: a second store that opens it fails at once.
 * https://www.sqlite.org/wal.html
 */
export function openStorage(dataFile: string, { syncWrites = false } = {}) {
  makePrivate(dataFile);
  const unlock = lockFile(`${dataFile}.lock`);
  const sqlite = new DatabaseSync(dataFile);
  sqlite.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${syncWrites ? "FULL" : "NORMAL"};
    PRAGMA cache_size = -${pageCacheKiB}; PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 67108864;`);
  sqlite.exec(schema);
  const begin = sqlite.prepare("BEGIN IMMEDIATE");
  const beginRead = sqlite.prepare("BEGIN");
  const commit = sqlite.prepare("COMMIT");
  let isOpen = false;
  let writeCount = 0;
  const listeners: (() => void)[] = [];
  /** Opens the shared transaction if it is not open; every write calls it first. */
  const beginWrite = () => {
    writeCount++;
    if (isOpen) return;
    begin.run();
    isOpen = true;
  };
  /** Undoes everything since the last commit. */
  const rollback = () => {
    if (!isOpen) return;
    isOpen = false;
    if (sqlite.isTransaction) sqlite.exec("ROLLBACK"); // SQLite has rolled back by itself after some errors
  };
  return {
    ...watchDisk(sqlite, dataFile),
    sqlite,
    beginWrite,
    rollback,
    /** Whether something is written that is not committed yet. */
    isWriting: () => isOpen,
    /** How often `beginWrite` was called: whether a piece of work has written anything. */
    writeCount: () => writeCount,
    /** Makes what was written durable: see above against what. */
    commit: () => {
      if (!isOpen) return;
      commit.run();
      isOpen = false;
      for (const onCommit of listeners) onCommit();
    },
    /** What is called after each commit. */
    listeners,
    /** Runs `work`, which only reads, in one transaction: outside of one, SQLite locks its log for each statement. */
    reading: <T>(work: () => T): T => {
      if (isOpen) return work();
      beginRead.run();
      try {
        return work();
      } finally {
        if (sqlite.isTransaction) commit.run();
      }
    },
    /** Runs `work` so that it is undone alone when it throws. */
    atomically: <T>(work: () => T): T => {
      beginWrite();
      sqlite.exec("SAVEPOINT part");
      try {
        const result = work();
        sqlite.exec("RELEASE part");
        return result;
      } catch (error) {
        if (sqlite.isTransaction) sqlite.exec("ROLLBACK TO part; RELEASE part");
        throw error;
      }
    },
    close: () => {
      rollback();
      sqlite.close();
      unlock();
    },
  };
}

/** Makes the file for its owner only before SQLite opens it, which gives its log the same mode. */
function makePrivate(dataFile: string): void {
  // One that is there is not opened: closing it would release the locks that this process may hold on it.
  if (!existsSync(dataFile)) closeSync(openSync(dataFile, "a", 0o600));
  for (const path of ["", "-wal", "-shm", "-journal"].map((suffix) => `${dataFile}${suffix}`)) {
    if (existsSync(path)) chmodSync(path, 0o600);
  }
}

/** Prepares a statement whose rows come as arrays: the cheapest form that `node:sqlite` has. */
export function prepareRows(sqlite: DatabaseSync, sql: string): StatementSync {
  const statement = sqlite.prepare(sql);
  statement.setReturnArrays(true);
  return statement;
}

/** A stored document: its row, its bytes, and the document itself, decoded when first asked for; or some of its fields. */
export type Row = {
  rid: number;
  bytes: Uint8Array;
  document(): Document;
  fields(wanted: ReadonlySet<string>): Document;
};

/** An index outside of SQLite's tables that follows what is written. */
export type FollowingIndex = {
  insert(rid: number, document: Document): void;
  replace(rid: number, before: Document, next: Document): void;
  remove(rid: number, document: Document): void;
};

export function makeRow(rid: number, bytes: Uint8Array): Row {
  let decoded: Document | undefined;
  return {
    rid,
    bytes,
    document: () => {
      decoded ??= decodeDocument(bytes);
      return decoded;
    },
    fields: (wanted) => decoded ?? decodeFields(bytes, wanted),
  };
}
