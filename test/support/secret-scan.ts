import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Writable } from "node:stream";
import type { Redis } from "ioredis";
import { type Db, MongoClient } from "mongodb";
import type { Config } from "../../src/config/config.ts";
import { ensureServices } from "../../src/embedded/ensure.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { openRedis } from "../../src/store/redis/redis.ts";
import { collectionNames } from "../../src/store/store.ts";

/** A place that was looked at, and all that is there, byte for byte (latin1). */
export type Place = { where: string; text: string };

/**
 * What a provider's key, a key of the API or a password of the embedded services looks like; the dots of a preview
 * (`sk-a…wxyz`) make it none. 43 characters in all are a SHA-256 hash in Base64, some of which begin so.
 */
const keyShape =
  /(?<![A-Za-z0-9])(?:sk-(?![A-Za-z0-9_-]{40}(?![A-Za-z0-9_-]))[A-Za-z0-9_-]{14,}|sk_[0-9A-Za-z]{32}(?![0-9A-Za-z])|sw-[A-Za-z0-9_-]{43})/g;

/** The secrets in a text, at most 10. */
export function secretsIn(text: string): string[] {
  return text.match(keyShape)?.slice(0, 10) ?? [];
}

/** Fails when one of the places holds a secret. */
export function rejectSecrets(places: readonly Place[]): void {
  const found = places.flatMap(({ where, text }) => secretsIn(text).map((secret) => `${secret} in ${where}`));
  if (found.length > 0) throw new Error(`a secret has leaked: ${found.slice(0, 10).join("; ")}`);
}

/** A log at the level of most detail that keeps only the secrets which it was told. `onLine` is told all of it. */
export function makeScannedLog(onLine?: (text: string) => void): {
  logger: ReturnType<typeof makeLogger>;
  leaks: Place[];
} {
  const leaks: Place[] = [];
  const destination = new Writable({
    write(chunk, _encoding, done) {
      const text = String(chunk);
      onLine?.(text);
      if (secretsIn(text).length > 0 && leaks.length < 10) leaks.push({ where: "the log", text });
      done();
    },
  });
  return { logger: makeLogger({ level: "trace", name: "test", destination }), leaks };
}

/**
 * All that a platform has in Redis and in its store, while it is open. Of an embedded store this is every byte of its file, so
 * that the platform must be the only one in its data folder.
 */
export async function readPlaces(config: Config): Promise<Place[]> {
  const { dataDir, redis, mongo } = config;
  const isEmbedded = { redis: redis.url === undefined, mongo: mongo.url === undefined };
  const logger = makeLogger({ level: "silent", name: "scan" });
  const services = await ensureServices({ dataDir, mongo: false, redis: isEmbedded.redis, logger });
  const connections = await openRedis({ ...redis, url: redis.url ?? services.redisUrl ?? "", logger });
  try {
    const inRedis = await redisPlaces(connections.producer, redis.prefix);
    const inStore = mongo.url === undefined ? await filePlaces(dataDir) : await serverPlaces(mongo.url, mongo.db);
    return [...inRedis, ...inStore];
  } finally {
    await connections.close();
    await services.close();
  }
}

/** Every key of a platform in Redis with its value, read by its type: a `DUMP` is compressed, and would hide what it holds. */
export async function redisPlaces(redis: Redis, prefix: string): Promise<Place[]> {
  const places: Place[] = [];
  for await (const keys of keysOf(redis, prefix)) {
    const types = await Promise.all(keys.map((key) => redis.type(key)));
    const values = await Promise.all(keys.map((key, at) => readValue(redis, key, types[at] ?? "none")));
    places.push(...keys.map((key, at) => ({ where: `Redis ${key}`, text: `${key}\n${values[at]}` })));
  }
  return places;
}

/** The keys with a prefix, some at a time. */
export async function* keysOf(redis: Redis, prefix: string): AsyncGenerator<string[]> {
  yield* redis.scanStream({ match: `${prefix}*`, count: 1_000 });
}

async function readValue(redis: Redis, key: string, type: string): Promise<string> {
  const read = {
    none: async () => [], // it has expired since
    string: () => redis.callBuffer("GET", key),
    hash: () => redis.callBuffer("HGETALL", key),
    list: () => redis.callBuffer("LRANGE", key, 0, -1),
    set: () => redis.callBuffer("SMEMBERS", key),
    zset: () => redis.callBuffer("ZRANGE", key, 0, -1),
    stream: () => redis.callBuffer("XRANGE", key, "-", "+"),
  }[type];
  if (!read) throw new Error(`${key} is of the type ${type}, which the scan does not read`);
  return toText(await read());
}

function toText(value: unknown): string {
  return Array.isArray(value) ? value.map(toText).join("\n") : Buffer.isBuffer(value) ? value.toString("latin1") : "";
}

/**
 * Every byte of the embedded store, also of what was deleted from it. Its log of writes is gone while the store moves to
 * another host.
 */
async function filePlaces(dataDir: string): Promise<Place[]> {
  const present = (await readdir(dataDir)).filter((name) => name === "store.sqlite" || name === "store.sqlite-wal");
  return Promise.all(present.map((name) => readBytes(dataDir, name)));
}

/** Every byte that the embedded services of a data folder have written, while they are stopped. */
export async function writtenPlaces(dataDir: string): Promise<Place[]> {
  const names = await readdir(join(dataDir, "redis"), { recursive: true, withFileTypes: true });
  const inRedis = names.filter((entry) => entry.isFile()).map((entry) => readBytes(entry.parentPath, entry.name));
  return [...(await filePlaces(dataDir)), ...(await Promise.all(inRedis))];
}

async function readBytes(folder: string, name: string): Promise<Place> {
  return { where: name, text: (await readFile(join(folder, name))).toString("latin1") };
}

async function serverPlaces(url: string, db: string): Promise<Place[]> {
  const client = await MongoClient.connect(url);
  try {
    return await documentPlaces(client.db(db));
  } finally {
    await client.close();
  }
}

/** Every document of a database, as its bytes. */
export async function documentPlaces(db: Db): Promise<Place[]> {
  const places: Place[] = [];
  for (const name of collectionNames) {
    for await (const bytes of db.collection(name).find({}, { raw: true })) {
      // With `raw` the driver hands out the bytes; its type does not say so.
      places.push({ where: name, text: Buffer.from(bytes as unknown as Uint8Array).toString("latin1") });
    }
  }
  return places;
}
