import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Collection, type Db, type Document, MongoClient } from "mongodb";
import { type MongoServer, startMongoServer } from "../../src/embedded/mongo/server.ts";
import { makeLogger } from "../../src/observe/logger.ts";

export const quiet = makeLogger({ level: "silent", name: "embedded-test" });

/** A folder of its own that is removed afterwards. */
export async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "embedded-"));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

export function startIn(folder: string): Promise<MongoServer> {
  return startMongoServer({
    dataFile: join(folder, "data.sqlite"),
    socketPath: join(folder, "mongo.sock"),
    logger: quiet,
  });
}

/** A server over the folder's data file and a client of it, for as long as `work` takes. */
export async function withServer<T>(folder: string, work: (db: Db, client: MongoClient) => Promise<T>): Promise<T> {
  const server = await startIn(folder);
  const client = new MongoClient(server.url, { promoteBuffers: false, serverSelectionTimeoutMS: 5_000 });
  try {
    return await work(client.db("test"), client);
  } finally {
    await client.close();
    await server.close();
  }
}

/** The same in a fresh folder. */
export function withFreshServer<T>(work: (db: Db, client: MongoClient) => Promise<T>): Promise<T> {
  return inFolder((folder) => withServer(folder, work));
}

/** A collection without documents, for a search index. */
export async function emptyCollection(db: Db): Promise<Collection<Document>> {
  const things = db.collection<Document>("things");
  await things.createIndex({ tenant: 1 });
  return things;
}
