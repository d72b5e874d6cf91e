import { DatabaseSync } from "node:sqlite";

/** Holds a file until released or dead, however the process ends: SQLite's lock is the system's. @throws SQLITE_BUSY */
export function lockFile(path: string): () => void {
  const lock = new DatabaseSync(path);
  try {
    lock.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    lock.close();
    throw error;
  }
  return () => lock.close();
}
