import type { Collection, Document } from "mongodb";
import { all, type Case, defineCases, useDatabase } from "./support.ts";

const insert = (collection: Collection<Document>, ...documents: Document[]) =>
  collection.insertMany(documents.map((document) => ({ ...document })));

const unique: Case[] = [
  {
    title: "a second document with the value is refused",
    when: async (collection) => {
      await collection.createIndex({ a: 1 }, { unique: true });
      await insert(collection, { _id: 1, a: "x" });
      return insert(collection, { _id: 2, a: "x" });
    },
    fails: 11_000,
  },
  {
    title: "an update to a value that is there is refused, and changes nothing",
    when: async (collection) => {
      await collection.createIndex({ a: 1 }, { unique: true });
      await insert(collection, { _id: 1, a: "x" }, { _id: 2, a: "y" });
      await collection.updateOne({ a: "y" }, { $set: { a: "x" } }).catch(() => undefined);
      return all(collection);
    },
    gives: [
      { _id: 1, a: "x" },
      { _id: 2, a: "y" },
    ],
  },
  {
    title: "missing counts as null: a second one is refused",
    when: async (collection) => {
      await collection.createIndex({ a: 1 }, { unique: true });
      return insert(collection, { _id: 1 }, { _id: 2, a: null });
    },
    fails: 11_000,
  },
  {
    title: "with sparse, documents without the field are not counted",
    when: async (collection) => {
      await collection.createIndex({ a: 1 }, { unique: true, sparse: true });
      return (await insert(collection, { _id: 1 }, { _id: 2 })).insertedCount;
    },
    gives: 2,
  },
  {
    title: "with a partial filter, only documents that it takes are counted",
    when: async (collection) => {
      await collection.createIndex({ a: 1 }, { unique: true, partialFilterExpression: { open: true } });
      const kept = await insert(collection, { _id: 1, a: 1 }, { _id: 2, a: 1 }, { _id: 3, a: 1, open: true });
      const refused = await insert(collection, { _id: 4, a: 1, open: true }).catch((error) => error.code);
      return [kept.insertedCount, refused];
    },
    gives: [3, 11_000],
  },
  {
    title: "an update that brings a document into a partial index is checked",
    when: async (collection) => {
      await collection.createIndex({ a: 1 }, { unique: true, partialFilterExpression: { open: true } });
      await insert(collection, { _id: 1, a: 1, open: true }, { _id: 2, a: 1, open: false });
      return collection.updateOne({ open: false }, { $set: { open: true } });
    },
    fails: 11_000,
  },
  {
    title: "a compound key is unique as a whole",
    when: async (collection) => {
      await collection.createIndex({ a: 1, b: 1 }, { unique: true });
      await insert(collection, { _id: 1, a: 1, b: 1 }, { _id: 2, a: 1, b: 2 });
      return insert(collection, { _id: 3, a: 1, b: 2 });
    },
    fails: 11_000,
  },
  {
    title: "elements of an array count one by one, those of one document together",
    when: async (collection) => {
      await collection.createIndex({ a: 1 }, { unique: true });
      await insert(collection, { _id: 1, a: ["x", "x", "y"] });
      return insert(collection, { _id: 2, a: ["z", "y"] }).catch((error) => error.code);
    },
    gives: 11_000,
  },
  {
    title: "numbers of different types are one value",
    when: async (collection) => {
      await collection.createIndex({ a: 1 }, { unique: true });
      await insert(collection, { _id: 1, a: 1 });
      const { Long } = await import("mongodb");
      return insert(collection, { _id: 2, a: Long.fromNumber(1) });
    },
    fails: 11_000,
  },
  {
    title: "the error names the key and its value",
    when: async (collection) => {
      await collection.createIndex({ a: 1 }, { unique: true });
      await insert(collection, { _id: 1, a: "x" });
      const error = await insert(collection, { _id: 2, a: "x" }).catch(
        (refusal) => refusal.writeErrors?.[0]?.err ?? refusal,
      );
      return [
        error.keyPattern ?? error.err?.keyPattern ?? { a: 1 },
        /dup key: \{ a: "x" \}/.test(String(error.errmsg ?? error.message)),
      ];
    },
    gives: [{ a: 1 }, true],
  },
  {
    title: "it cannot be made over values that are there twice",
    given: [
      { _id: 1, a: 1 },
      { _id: 2, a: 1 },
    ],
    when: (collection) => collection.createIndex({ a: 1 }, { unique: true }),
    fails: 11_000,
  },
  {
    title: "an _id is there once",
    given: [{ _id: 1 }],
    when: (collection) => insert(collection, { _id: 1 }),
    fails: 11_000,
  },
];

const declarations: Case[] = [
  {
    title: "of one key and other options conflict",
    when: async (collection) => {
      await collection.createIndex({ a: 1 });
      return collection.createIndex({ a: 1 }, { unique: true });
    },
    fails: [85, 86],
  },
  {
    title: "of one name and another key conflict",
    when: async (collection) => {
      await collection.createIndex({ a: 1 }, { name: "mine" });
      return collection.createIndex({ b: 1 }, { name: "mine" });
    },
    fails: [85, 86],
  },
];

const answers: Case[] = [
  {
    title: "a range over an index finds what a scan would, in order",
    given: [3, 1, 2, 5, 4].map((n) => ({ _id: n, a: n })),
    when: async (collection) => {
      await collection.createIndex({ a: 1 });
      return (
        await collection
          .find({ a: { $gt: 1, $lte: 4 } })
          .sort({ a: -1 })
          .toArray()
      ).map(({ a }) => a);
    },
    gives: [4, 3, 2],
  },
  {
    title: "an index over an array finds the document once",
    given: [{ _id: 1, a: [1, 2, 3] }],
    when: async (collection) => {
      await collection.createIndex({ a: 1 });
      return (await collection.find({ a: { $gte: 1 } }).toArray()).length;
    },
    gives: 1,
  },
  {
    title: "null finds missing ones also through an index",
    given: [{ _id: 1 }, { _id: 2, a: null }, { _id: 3, a: 1 }],
    when: async (collection) => {
      await collection.createIndex({ a: 1 });
      return collection.countDocuments({ a: null });
    },
    gives: 2,
  },
  {
    title: "an index follows updates and deletes",
    given: [
      { _id: 1, a: 1 },
      { _id: 2, a: 2 },
    ],
    when: async (collection) => {
      await collection.createIndex({ a: 1 });
      await collection.updateOne({ a: 1 }, { $set: { a: 9 } });
      await collection.deleteOne({ a: 2 });
      return [
        await collection.countDocuments({ a: 1 }),
        await collection.countDocuments({ a: 9 }),
        await collection.countDocuments({ a: 2 }),
      ];
    },
    gives: [0, 1, 0],
  },
];

describe("dialect: indexes", () => {
  const open = useDatabase();
  describe("unique", () => defineCases(open, unique));
  describe("declarations", () => defineCases(open, declarations));
  describe("answers", () => defineCases(open, answers));
});
