import type { Collection, Document } from "mongodb";
import { all, type Case, defineCases, ofId, useDatabase } from "./support.ts";

const numbers = (count: number): Document[] => Array.from({ length: count }, (_, n) => ({ _id: n }));
const counts = async (result: Promise<{ matchedCount: number; modifiedCount: number; upsertedCount: number }>) => {
  const { matchedCount, modifiedCount, upsertedCount } = await result;
  return [matchedCount, modifiedCount, upsertedCount];
};

const writes: Case[] = [
  {
    title: "an update that changes nothing matches and modifies none",
    given: [{ _id: 1, a: 1 }],
    when: (c) => counts(c.updateOne({ a: 1 }, { $set: { a: 1 } })),
    gives: [1, 0, 0],
  },
  {
    title: "updateMany counts all",
    given: numbers(3),
    when: (c) => counts(c.updateMany({}, { $set: { a: 1 } })),
    gives: [3, 3, 0],
  },
  {
    title: "an upsert inserts, with the filter's equalities",
    when: async (c) => [
      await counts(c.updateOne(ofId(7, { k: "x", n: { $gt: 1 } }), { $set: { a: 1 } }, { upsert: true })),
      await all(c),
    ],
    gives: [[0, 0, 1], [{ _id: 7, k: "x", a: 1 }]],
  },
  {
    title: "an upsert that finds one updates it",
    given: [{ _id: 7 }],
    when: async (c) => [await counts(c.updateOne(ofId(7), { $set: { a: 1 } }, { upsert: true })), await all(c)],
    gives: [[1, 1, 0], [{ _id: 7, a: 1 }]],
  },
  {
    title: "$setOnInsert counts at the insert alone",
    when: async (c) => {
      for (let turn = 0; turn < 2; turn += 1)
        await c.updateOne(ofId(1), { $setOnInsert: { made: turn }, $set: { seen: turn } }, { upsert: true });
      return all(c);
    },
    gives: [{ _id: 1, made: 0, seen: 1 }],
  },
  {
    title: "replaceOne keeps the _id alone",
    given: [{ _id: 1, a: 1, b: 2 }],
    when: async (c) => {
      await c.replaceOne(ofId(1), { c: 3 });
      return all(c);
    },
    gives: [{ _id: 1, c: 3 }],
  },
  {
    title: "deleteOne takes one, deleteMany all that match",
    given: numbers(5),
    when: async (c) => [
      (await c.deleteOne({ _id: { $gte: 0 } } as never)).deletedCount,
      (await c.deleteMany({ _id: { $gte: 3 } } as never)).deletedCount,
      await c.countDocuments(),
    ],
    gives: [1, 2, 2],
  },
  {
    title: "an insert puts _id first",
    when: async (c) => {
      await c.insertOne({ a: 1, ...ofId(1) });
      return all(c);
    },
    gives: [{ _id: 1, a: 1 }],
  },
  {
    title: "an ordered insert stops at the first refusal",
    given: [{ _id: 2 }],
    when: async (c) => {
      await c.insertMany(numbers(4)).catch(() => undefined);
      return c.countDocuments();
    },
    gives: 3,
  },
  {
    title: "an unordered insert continues after a refusal",
    given: [{ _id: 1 }],
    when: async (c) => {
      await c.insertMany(numbers(4), { ordered: false }).catch(() => undefined);
      return c.countDocuments();
    },
    gives: 4,
  },
  {
    title: "a refusal names its document",
    given: [{ _id: 1 }],
    when: (c) =>
      c
        .insertMany(numbers(4), { ordered: false })
        .catch((error) => error.writeErrors.map(({ index, code }: { index: number; code: number }) => [index, code])),
    gives: [[1, 11_000]],
  },
  {
    title: "a bulk write does all kinds in turn",
    given: numbers(2),
    when: async (c) => {
      const result = await c.bulkWrite([
        { insertOne: { document: { ...ofId(9) } as never } },
        { updateOne: { filter: ofId(0), update: { $set: { a: 1 } } } },
        { deleteOne: { filter: ofId(1) } },
        { updateOne: { filter: ofId(10), update: { $set: { a: 2 } }, upsert: true } },
      ]);
      return [result.insertedCount, result.modifiedCount, result.deletedCount, result.upsertedCount, await all(c)];
    },
    gives: [1, 1, 1, 1, [{ _id: 0, a: 1 }, { _id: 9 }, { _id: 10, a: 2 }]],
  },
  { title: "an _id that is an array is refused", when: (c) => c.insertOne(ofId([1]) as never), fails: [2, 53] },
  {
    title: "a document over 16 MiB is refused",
    when: (c) => c.insertOne({ text: "x".repeat(16.5 * 2 ** 20) }),
    fails: [2, 10_334],
  },
];

const modify: Case[] = [
  {
    title: "gives the document as it was",
    given: [{ _id: 1, a: 1 }],
    when: (c) => c.findOneAndUpdate({ a: 1 }, { $inc: { a: 1 } }),
    gives: { _id: 1, a: 1 },
  },
  {
    title: "gives it as it is when asked",
    given: [{ _id: 1, a: 1 }],
    when: (c) => c.findOneAndUpdate({ a: 1 }, { $inc: { a: 1 } }, { returnDocument: "after" }),
    gives: { _id: 1, a: 2 },
  },
  {
    title: "gives the fields that are wanted, as they are then",
    given: [{ _id: 1, a: 1, b: { c: 1, d: 2 }, e: [1] }],
    when: (c) =>
      c.findOneAndUpdate({ a: 1 }, { $inc: { a: 1 } }, { returnDocument: "after", projection: { a: 1, "b.d": 1 } }),
    gives: { _id: 1, a: 2, b: { d: 2 } },
  },
  { title: "gives null for none", when: (c) => c.findOneAndUpdate({ a: 1 }, { $set: { a: 2 } }), gives: null },
  {
    title: "upserts and gives the new one",
    when: (c) => c.findOneAndUpdate(ofId(5), { $set: { a: 1 } }, { upsert: true, returnDocument: "after" }),
    gives: { _id: 5, a: 1 },
  },
  {
    title: "replaces",
    given: [{ _id: 1, a: 1 }],
    when: (c) => c.findOneAndReplace({ a: 1 }, { b: 1 }, { returnDocument: "after" }),
    gives: { _id: 1, b: 1 },
  },
  {
    title: "lets one of many racing ones win",
    given: [{ _id: 1, state: "free" }],
    when: async (c) => {
      const wins = await Promise.all(
        Array.from({ length: 50 }, (_, n) => c.findOneAndUpdate({ state: "free" }, { $set: { state: "held", by: n } })),
      );
      return wins.filter((document) => document !== null).length;
    },
    gives: 1,
  },
  {
    title: "refuses an update with no operator in updateOne's place",
    given: [{ _id: 1 }],
    when: (c, db) => db.command({ findAndModify: c.collectionName, query: {} }),
    fails: [2, 9],
  },
];

const ids = async (found: ReturnType<Collection<Document>["find"]>) => (await found.toArray()).map(({ _id }) => _id);

const cursors: Case[] = [
  {
    title: "reads more than one batch",
    given: numbers(350),
    when: async (c) => (await ids(c.find().sort({ _id: 1 }).batchSize(100))).length,
    gives: 350,
  },
  {
    title: "a limit over several batches holds",
    given: numbers(50),
    when: async (c) => (await ids(c.find().batchSize(10).limit(25))).length,
    gives: 25,
  },
  {
    title: "a closed cursor gives no more",
    given: numbers(50),
    when: async (c, db) => {
      const cursor = c.find().batchSize(10);
      await cursor.next();
      const { cursor: open } = await db.command({ find: c.collectionName, batchSize: 2 });
      await db.command({ killCursors: c.collectionName, cursors: [open.id] });
      await cursor.close();
      return db.command({ getMore: open.id, collection: c.collectionName });
    },
    fails: 43,
  },
  {
    title: "a cursor that never was is refused",
    given: numbers(1),
    when: async (c, db) => {
      const { Long } = await import("mongodb");
      return db.command({ getMore: Long.fromString("123456789"), collection: c.collectionName });
    },
    fails: 43,
  },
  { title: "a collection that is not there is empty", when: (c) => c.find().toArray(), gives: [] },
  {
    title: "sorts by several fields",
    given: [
      { _id: 1, a: 1, b: 1 },
      { _id: 2, a: 0, b: 5 },
      { _id: 3, a: 1, b: 2 },
    ],
    when: (c) => ids(c.find().sort({ a: -1, b: -1 })),
    gives: [3, 1, 2],
  },
  {
    title: "a projection of fields keeps the order of the document",
    given: [{ _id: 1, b: 1, a: { x: 1, y: 2 }, c: 3 }],
    when: (c) => c.find().project({ "a.y": 1, b: 1 }).toArray(),
    gives: [{ _id: 1, b: 1, a: { y: 2 } }],
  },
];

const errors: Case[] = [
  { title: "a command that there is not", when: (_c, db) => db.command({ nonsense: 1 }), fails: 59 },
  {
    title: "an operator that there is not",
    given: [{ _id: 1 }],
    when: (c) => c.find({ a: { $nonsense: 1 } }).toArray(),
    fails: 2,
  },
  {
    title: "a top-level operator that there is not",
    given: [{ _id: 1 }],
    when: (c) => c.find({ $nonsense: 1 }).toArray(),
    fails: 2,
  },
  {
    title: "an update operator that there is not",
    given: [{ _id: 1 }],
    when: (c) => c.updateOne({}, { $nonsense: { a: 1 } } as never),
    fails: 9,
  },
  {
    title: "$in of no array",
    given: [{ _id: 1 }],
    when: (c) => c.find({ a: { $in: 5 } } as never).toArray(),
    fails: 2,
  },
  {
    title: "a regular expression that cannot be",
    given: [{ _id: 1, a: "x" }],
    when: (c) => c.find({ a: { $regex: "(" } }).toArray(),
    fails: [2, 51_091],
  },
  {
    title: "a change of _id",
    given: [{ _id: 1 }],
    when: (c) => c.updateOne({}, { $set: { _id: 2 } } as never),
    fails: 66,
  },
];

describe("dialect: writes and cursors", () => {
  const open = useDatabase();
  describe("writes", () => defineCases(open, writes));
  describe("findOneAnd…", () => defineCases(open, modify));
  describe("cursors", () => defineCases(open, cursors));
  describe("errors", () => defineCases(open, errors));
});
