import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { BSON, type Collection, type Db, type Document, MongoClient, MongoServerError } from "mongodb";
import { startMongoServer } from "../../src/embedded/mongo/server.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { skipTest } from "../support/skip-test.ts";

/**
 * One case of the dialect: what is in the collection, what is done, and what MongoDB's documentation says of it. Every
 * case has a collection of its own. The outcome is compared as canonical Extended JSON, so order of fields and types count.
 */
export type Case = {
  title: string;
  given?: readonly Document[];
  when(collection: Collection<Document>, db: Db): Promise<unknown>;
} & ({ gives: unknown } | { fails: number | readonly number[] });

type Database = { client: MongoClient; db: Db };
export type OpenDatabase = () => Database;

/** Registers hooks that connect to `MONGODB_URL`, or to an embedded server of this file's own on a Unix socket. */
export function useDatabase(): OpenDatabase {
  let database: Database | undefined;
  let close = async () => {};
  before("connect to the server", async () => {
    const server = await startServer();
    const client = new MongoClient(server.url, { promoteBuffers: false, serverSelectionTimeoutMS: 5_000 });
    const db = client.db(`dialect_${process.pid}_${Math.random().toString(36).slice(2, 10)}`);
    close = async () => {
      await db.dropDatabase();
      await client.close();
      await server.close();
    };
    database = { client, db };
    await db.command({ ping: 1 });
  });
  after("disconnect", () => close());
  return () => {
    if (database === undefined) throw new Error("the database is there only while the tests run");
    return database;
  };
}

/** The server of `MONGODB_URL`, or an embedded one. */
export async function startServer(): Promise<{ url: string; close(): Promise<void> }> {
  const given = process.env.MONGODB_URL;
  if (given) return { url: given, close: async () => {} };
  const folder = await mkdtemp(join(tmpdir(), "dialect-"));
  const server = await startMongoServer({
    dataFile: join(folder, "data.sqlite"),
    socketPath: join(folder, "mongo.sock"),
    logger: makeLogger({ level: "silent", name: "dialect" }),
  });
  const close = async () => {
    await server.close();
    await rm(folder, { recursive: true });
  };
  return { url: server.url, close };
}

let lastCollection = 0;

/** A collection that no other case uses. */
export async function freshCollection(
  { db }: Database,
  given: readonly Document[] = [],
): Promise<Collection<Document>> {
  lastCollection += 1;
  const collection = db.collection<Document>(`case_${lastCollection}`);
  if (given.length > 0) await collection.insertMany(given.map((document) => ({ ...document })));
  return collection;
}

/** Declares the cases as tests of the current suite. */
export function defineCases(open: OpenDatabase, cases: readonly Case[]): void {
  for (const entry of cases) {
    it(entry.title, async () => {
      const database = open();
      const collection = await freshCollection(database, entry.given);
      const run = () => entry.when(collection, database.db);
      if ("fails" in entry) await expectFailure(run, entry.fails);
      else expectSame(await run(), entry.gives);
    });
  }
}

/** The outcome has the same fields, in the same order, with the same types and values. */
export function expectSame(actual: unknown, expected: unknown): void {
  expect(canonical(actual)).to.equal(canonical(expected));
}

function canonical(value: unknown): string {
  return BSON.EJSON.stringify({ value }, { relaxed: false });
}

/** The operation is refused by the server with one of the codes. Several are given where MongoDB's versions differ. */
export async function expectFailure(
  run: () => Promise<unknown>,
  codes: number | readonly number[],
): Promise<MongoServerError> {
  const outcome = await run().then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if (!("error" in outcome)) throw new Error(`expected a refusal, got ${canonical(outcome.value)}`);
  if (!(outcome.error instanceof MongoServerError)) throw outcome.error;
  expect(outcome.error.code, outcome.error.message).to.be.oneOf([codes].flat());
  return outcome.error;
}

/** A filter for the document of an _id of any type: the driver's own type of a filter takes an ObjectId only. */
export function ofId(_id: unknown, filter: Document = {}): Document {
  return { _id, ...filter };
}

/** All documents of the collection, by _id. */
export function all(collection: Collection<Document>): Promise<Document[]> {
  return collection.find().sort({ _id: 1 }).toArray();
}

/** The _ids that a query finds, ascending. */
export async function idsOf(collection: Collection<Document>, filter: Document): Promise<unknown[]> {
  const found = await collection.find(filter).sort({ _id: 1 }).project({ _id: 1 }).toArray();
  return found.map((document) => document._id);
}

/** A case of the shape "this query over these documents finds these _ids". */
export function query(title: string, given: readonly Document[], filter: Document, ids: readonly unknown[]): Case {
  return { title, given, when: (collection) => idsOf(collection, filter), gives: ids };
}

/** A case of the shape "this update makes this of the document". */
export function update(
  title: string,
  before: Document,
  change: Document | Document[],
  after: Document,
  options: { filter?: Document; arrayFilters?: Document[] } = {},
): Case {
  const { filter = {}, ...rest } = options;
  return {
    title,
    given: [{ _id: 1, ...before }],
    when: async (collection) => {
      await collection.updateOne(ofId(1, filter), change, rest);
      return collection.findOne(ofId(1));
    },
    gives: { _id: 1, ...after },
  };
}

/** A case of the shape "this update of the document is refused". */
export function rejectedUpdate(
  title: string,
  before: Document,
  change: Document | Document[],
  fails: number | readonly number[],
  options: { filter?: Document; arrayFilters?: Document[] } = {},
): Case {
  const { filter = {}, ...rest } = options;
  return {
    title,
    given: [{ _id: 1, ...before }],
    when: (collection) => collection.updateOne(ofId(1, filter), change, rest),
    fails,
  };
}

/** A case of the shape "this pipeline over these documents gives these". */
export function pipeline(
  title: string,
  given: readonly Document[],
  stages: Document[],
  gives: readonly unknown[],
): Case {
  return { title, given, when: (collection) => collection.aggregate(stages).toArray(), gives };
}

/** Marks a suite that needs search indexes: where the server has none its tests are reported as skipped, with the reason. */
export function needsSearchIndexes(open: OpenDatabase): void {
  let hasThem = false;
  before("ask whether the server has search indexes", async () => {
    const collection = await freshCollection(open(), [{ _id: 1 }]);
    hasThem = await collection
      .listSearchIndexes()
      .toArray()
      .then(
        () => true,
        (error: unknown) => {
          if (error instanceof MongoServerError) return false;
          throw error;
        },
      );
  });
  beforeEach(function () {
    if (!hasThem) skipTest(this, "this server has no search indexes");
  });
}
