import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Collection, Db } from "mongodb";
import { ConfigError } from "../lib/errors.ts";
import type { Logger } from "../observe/logger.ts";
import { defineCollection } from "./collection.ts";
import type { Migration } from "./migrations.ts";
import { tenantCollection } from "./tenant-store.ts";
import { insertOrFind, updateIf } from "./writes.ts";

/**
 * Which version the stored data has, which one a release must know at least to run on them, and which process is changing them.
 * There is one such record. An earlier release noted no `readableFrom`: nobody but itself and later ones reads what it wrote.
 */
type VersionRecord = {
  _id: "data";
  version: number;
  readableFrom?: number;
  lock?: { owner: string; until: Date };
};

export const versionCollection = defineCollection<VersionRecord>({ name: "dataVersion", indexes: [] });

/** A process that has not renewed its lock for this long is taken to be dead, in ms. */
const LOCK_MS = 20_000;
/** How long a process waits for another one that changes the data, in ms. */
const WAIT_MS = 300_000;
/** How often it looks whether that is done, in ms. */
const LOOK_EVERY_MS = 200;

type MigrationOptions = {
  migrations: readonly Migration[];
  /** See `oldestBeside` of the migrations. */
  oldestBeside: number;
  logger: Pick<Logger, "info">;
  lockMs?: number;
  waitMs?: number;
};

/**
 * Brings the data to the version that this code knows, one step after the other, each once. Several processes may start at
 * the same time: one of them does it under a lock, the others wait. A process that dies leaves its step to the next one.
 * An empty database has the newest version from the start; one without a version was written before versions were kept and
 * has version 1. Newer data are left as they are, if the release that changed them says that this one can run on them.
 * @throws ConfigError when it cannot, or another process does not finish in time.
 */
export async function migrateData(db: Db, options: MigrationOptions): Promise<void> {
  const { migrations, oldestBeside, logger, lockMs = LOCK_MS, waitMs = WAIT_MS } = options;
  const versions = db.collection<VersionRecord>(versionCollection.name);
  const newest = migrations.length + 1;
  const owner = randomUUID();
  const deadline = performance.now() + waitMs;
  for (;;) {
    const { version, readableFrom = version } = await readVersion(db, versions, options);
    if (readableFrom > newest) {
      throw new ConfigError(
        `The data in ${db.databaseName} need a Switchyard that knows version ${readableFrom} of them, and this one knows ${newest} at most: start the newer one that changed them.`,
      );
    }
    if (version > newest)
      logger.info({ version, known: newest }, "a newer release has changed the stored data: this one can run on them");
    if (version >= newest) return;
    if (await lock(versions, { owner, version, oldestBeside, lockMs }))
      return runFrom(db, versions, { ...options, owner, lockMs, version });
    if (performance.now() > deadline) {
      throw new ConfigError(
        `Another process has been changing the data in ${db.databaseName} from version ${version} for more than ${waitMs / 1_000} s: start again when it is done.`,
      );
    }
    await delay(LOOK_EVERY_MS);
  }
}

async function readVersion(
  db: Db,
  versions: Collection<VersionRecord>,
  { migrations, oldestBeside }: Pick<MigrationOptions, "migrations" | "oldestBeside">,
): Promise<VersionRecord> {
  const found = await versions.findOne({ _id: "data" });
  if (found) return found;
  const isEmpty = (await db.collection(tenantCollection.name).findOne({}, { projection: { _id: 1 } })) === null;
  const version = isEmpty ? { version: migrations.length + 1, readableFrom: oldestBeside } : { version: 1 };
  return insertOrFind(versions, { _id: "data", ...version }, { _id: "data" });
}

/** The version of the data; undefined while nothing is stored. */
export async function dataVersionOf(db: Db): Promise<number | undefined> {
  return (await db.collection<VersionRecord>(versionCollection.name).findOne({ _id: "data" }))?.version;
}

/** Takes the lock. From now on a release that is too old for what is to come does not start. */
function lock(
  versions: Collection<VersionRecord>,
  { owner, version, oldestBeside, lockMs }: { owner: string; version: number; oldestBeside: number; lockMs: number },
): Promise<boolean> {
  const now = Date.now();
  const isFree = { $or: [{ lock: { $exists: false } }, { "lock.until": { $lte: new Date(now) } }] };
  const until = new Date(now + lockMs);
  return updateIf(
    versions,
    { _id: "data", version, ...isFree },
    { $set: { lock: { owner, until }, readableFrom: oldestBeside } },
  );
}

async function runFrom(
  db: Db,
  versions: Collection<VersionRecord>,
  { migrations, logger, owner, lockMs, version }: MigrationOptions & { owner: string; lockMs: number; version: number },
): Promise<void> {
  const held = { _id: "data" as const, "lock.owner": owner };
  const renew = async () => {
    await versions.updateOne(held, { $set: { "lock.until": new Date(Date.now() + lockMs) } }).catch(() => undefined); // the next one may succeed
  };
  const renewing = setInterval(renew, lockMs / 3);
  try {
    for (const [at, { what, run }] of migrations.entries()) {
      const from = at + 1;
      if (from < version) continue;
      logger.info({ from, to: from + 1, what }, "changing the stored data");
      await run(db);
      if (!(await updateIf(versions, { ...held, version: from }, { $set: { version: from + 1 } })))
        throw new ConfigError("Another process has taken over the change of the data: start again.");
    }
  } finally {
    clearInterval(renewing);
    await versions.updateOne(held, { $unset: { lock: "" } });
  }
}
