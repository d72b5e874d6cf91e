import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { loadConfig } from "../../../src/config/config.ts";
import { makeLogger } from "../../../src/observe/logger.ts";
import { openRedis } from "../../../src/store/redis/redis.ts";
import { documentPlaces, type Place, redisPlaces } from "../../support/secret-scan.ts";
import { canaries } from "./canaries.ts";
import type { Check, Evidence } from "./evidence.ts";

/** Where the platform of a run keeps what it has: `folder` has its data and its logs. */
export type Kept = { folder: string; env: Record<string, string> };

const values = Object.values(canaries);

/**
 * No value that a tenant's guards mask or block stands anywhere: in a record, in Redis, in a byte of a file, or in what was sent
 * outside.
 */
export async function checkCanaries({ db, load, external }: Evidence, { folder, env }: Kept): Promise<Check> {
  const places = [...(await redisOf(env)), ...(await documentPlaces(db)), ...(await filesIn(folder))];
  const found = places.flatMap(({ where, text }) =>
    values.filter((one) => text.includes(one)).map((one) => `${one} in ${where}`),
  );
  return {
    promise: "no value that guards mask or block is anywhere",
    found: `${load.sown} texts with one, ${places.length} records, keys and files`,
    breaches: [...new Set([...found, ...external.unmasked])],
  };
}

async function redisOf(env: Record<string, string>): Promise<Place[]> {
  const { redis } = loadConfig({ ...env, LOG_LEVEL: "silent" });
  const logger = makeLogger({ level: "silent", name: "chaos" });
  const connections = await openRedis({ ...redis, url: redis.url ?? "", logger });
  try {
    return await redisPlaces(connections.producer, redis.prefix);
  } finally {
    await connections.close();
  }
}

/** Every file of a folder, as its bytes; one that is gone by then is nothing. */
async function filesIn(folder: string): Promise<Place[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  return Promise.all(files.map(async (where) => ({ where, text: await readFile(where, "latin1").catch(() => "") })));
}
