import { setTimeout as delay } from "node:timers/promises";
import type { Db } from "mongodb";

/** How often the copy is asked whether it is done, in ms. */
const POLL_MS = 50;

/**
 * Copies the data of the embedded store to a new file, by the absolute path that the store's process sees. The store works
 * meanwhile: what was acknowledged before the call is in the copy. On any other MongoDB the command does not exist.
 */
export async function backUpStore(db: Db, path: string): Promise<void> {
  while (!(await db.admin().command({ backupTo: path })).done) await delay(POLL_MS);
}
