import { once } from "node:events";
import type { Db } from "mongodb";
import { connectStore } from "../../src/store/connect.ts";
import { migrateData } from "../../src/store/data-version.ts";
import type { Migration } from "../../src/store/migrations.ts";

/** How long a lock of these tests lasts without being renewed, in ms. */
export const LOCK_MS = 1_000;

/** Two steps that leave a document each time they run. In a process that is to be killed, the second one does not end. */
export function loggedSteps(hangs: (db: Db) => Promise<void> = async () => undefined): Migration[] {
  const log = (step: string, then: (db: Db) => Promise<void>): Migration => ({
    what: step,
    async run(db) {
      await db.collection("log").insertOne({ step });
      await then(db);
    },
  });
  return [log("first", async () => undefined), log("second", hangs)];
}

/** A process that migrates: `URL DATABASE`, and `hang` for one that is to be killed at its second step. */
if (import.meta.main) {
  const [url = "", database = "", mode] = process.argv.slice(2);
  const { db, close } = await connectStore({ url, db: database, timeoutMs: 10_000 });
  const hang = async () => {
    process.send?.("hanging");
    await once(process, "never");
  };
  const migrations = mode === "hang" ? loggedSteps(hang) : loggedSteps();
  await migrateData(db, {
    migrations,
    oldestBeside: 1,
    logger: { info: () => undefined },
    lockMs: LOCK_MS,
    waitMs: 20_000,
  });
  await close();
  process.disconnect?.();
}
