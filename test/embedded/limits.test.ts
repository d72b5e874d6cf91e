import { expect } from "chai";
import type { Document } from "mongodb";
import { pollUntil } from "../support/poll-until.ts";
import { emptyCollection, withFreshServer } from "./support.ts";

const rejectionOf = (work: Promise<unknown>) => work.then(() => undefined).catch((error: unknown) => error);

describe("embedded store: what it enforces and refuses", () => {
  it("removes expired documents, and no others", () =>
    withFreshServer(async (db) => {
      const things = db.collection<Document>("things");
      await things.createIndexes([
        { key: { at: 1 }, expireAfterSeconds: 60 },
        { key: { end: 1 }, expireAfterSeconds: 0, partialFilterExpression: { done: true } },
      ]);
      const past = new Date(Date.now() - 61_000);
      await things.insertMany([
        { n: "over", at: past },
        { n: "not yet", at: new Date() },
        { n: "no date", at: "yesterday" },
        { n: "partial, over", end: past, done: true },
        { n: "partial, not in the index", end: past, done: false },
      ]);
      const left = () => things.find({}).sort({ n: 1 }).project({ n: 1 }).toArray();
      const found = await pollUntil(async () => ((await left()).length === 3 ? left() : undefined), { what: "expiry" });
      expect(found.map(({ n }) => n)).to.deep.equal(["no date", "not yet", "partial, not in the index"]);
    }));

  it("refuses transactions and change streams, not sessions", () =>
    withFreshServer(async (db, client) => {
      const things = db.collection<Document>("things");
      await client.withSession(async (session) => {
        expect((await things.insertOne({ n: 1 }, { session })).acknowledged).to.equal(true);
        session.startTransaction();
        expect(await rejectionOf(things.insertOne({ n: 2 }, { session }))).to.be.instanceOf(Error);
        await session.abortTransaction().catch(() => undefined); // the driver may find that nothing was begun
      });
      const command = {
        insert: "things",
        documents: [{ n: 3 }],
        txnNumber: 1,
        startTransaction: true,
        autocommit: false,
      };
      expect(await rejectionOf(db.command(command))).to.include({ code: 40415 });
      expect(await things.countDocuments()).to.equal(1);
      expect(
        await rejectionOf(db.command({ aggregate: "things", pipeline: [{ $changeStream: {} }], cursor: {} })),
      ).to.include({ code: 40324 });
    }));

  const refused: [string, Document, number][] = [
    ["a command that nobody knows", { nothing: 1 }, 59],
    ["a field that the command does not have", { find: "things", unknown: 1 }, 40415],
    ["a collation", { find: "things", collation: { locale: "de" } }, 40415],
    ["a tailable cursor", { find: "things", tailable: true }, 40415],
    ["a text index", { createIndexes: "things", indexes: [{ key: { a: "text" }, name: "t" }] }, 238],
    ["a collection name with a dollar", { insert: "a$b", documents: [{}] }, 73],
    ["an array as _id", { insert: "things", documents: [{ _id: [1] }] }, 53],
    ["a negative limit", { find: "things", limit: -1 }, 2],
    [
      "a dynamic search index",
      { createSearchIndexes: "things", indexes: [{ name: "d", definition: { mappings: { dynamic: true } } }] },
      238,
    ],
  ];
  it(`refuses ${refused.map(([title]) => title).join(", ")}`, () =>
    withFreshServer(async (db) => {
      await emptyCollection(db);
      for (const [title, command, code] of refused) {
        const answer: Document = await db.command(command).catch((error: unknown) => Object(error));
        expect(answer.code ?? answer.writeErrors?.[0]?.code, title).to.equal(code);
      }
    }));

  it("serves other clients' reads and writes while a cursor waits between two batches", () =>
    withFreshServer(async (db) => {
      const things = db.collection<Document>("things");
      await things.createIndex({ n: 1 });
      await things.insertMany(Array.from({ length: 500 }, (_, n) => ({ n })));
      const cursor = things
        .find({ n: { $gte: 0 } })
        .sort({ n: 1 })
        .batchSize(50);
      const seen: number[] = [];
      for await (const { n } of cursor) {
        seen.push(n);
        if (n === 60) {
          await things.deleteMany({ n: { $gte: 400 } });
          await things.insertOne({ n: 399.5 });
        }
      }
      expect(seen).to.deep.equal([...Array.from({ length: 400 }, (_, n) => n), 399.5]);
    }));

  it("sorts without an index, whole documents coming out in order", () =>
    withFreshServer(async (db) => {
      const things = db.collection<Document>("things");
      const text = "x".repeat(500_000);
      const made = Array.from({ length: 80 }, (_, n) => ({ n: (n * 37) % 80, deep: { n: n % 3 }, text }));
      for (let at = 0; at < made.length; at += 20) await things.insertMany(made.slice(at, at + 20));
      const found = await things.find({}).sort({ "deep.n": -1, n: 1 }).batchSize(7).toArray();
      const given = found.map(({ n, deep }) => [deep.n, n]);
      expect(given).to.deep.equal(given.toSorted((a, b) => b[0] - a[0] || a[1] - b[1]));
      expect(found.every((one) => one.text === text)).to.equal(true);
      expect(found).to.have.length(80);
    }));

  it("ends a cursor whose collection is dropped, with MongoDB's error", () =>
    withFreshServer(async (db) => {
      const things = db.collection<Document>("things");
      await things.createIndex({ n: 1 });
      await things.insertMany(Array.from({ length: 500 }, (_, n) => ({ n })));
      const cursor = things.find({ n: { $gte: 0 } }).batchSize(2);
      await cursor.next();
      await db.dropDatabase();
      expect(await rejectionOf(cursor.toArray())).to.include({ code: 175 });
    }));
});
