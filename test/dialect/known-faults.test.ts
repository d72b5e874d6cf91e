import { Binary, Long, ObjectId } from "mongodb";
import { all, type Case, defineCases, query, rejectedUpdate, update, useDatabase } from "./support.ts";

/**
 * What in-memory query engines were seen to get wrong, and MongoDB gets right. Each has its name here, so that a fault that
 * comes back is known by it.
 */

const blob = (bytes: number[], subtype = 0) => new Binary(Buffer.from(bytes), subtype);
const anyId = new ObjectId("65a000000000000000000001");

const changesThatAreDropped: Case[] = [
  rejectedUpdate("$inc of a string is refused", { a: "1" }, { $inc: { a: 1 } }, 14),
  rejectedUpdate("$inc of null is refused", { a: null }, { $inc: { a: 1 } }, 14),
  rejectedUpdate("$push on a scalar is refused", { a: 1 }, { $push: { a: 2 } } as never, 2),
  rejectedUpdate("$set through a scalar is refused", { a: 1 }, { $set: { "a.b": 2 } }, 28),
  rejectedUpdate("$set through null is refused and does not overwrite it", { a: null }, { $set: { "a.b": 2 } }, 28),
];

const comparisons: Case[] = [
  query(
    "two different blobs that are no text are different",
    [
      { _id: 1, a: blob([0xff, 0xfe]) },
      { _id: 2, a: blob([0xfd, 0xfc]) },
    ],
    { a: blob([0xff, 0xfe]) },
    [1],
  ),
  query(
    "blobs of different subtypes are different",
    [
      { _id: 1, a: blob([1, 2]) },
      { _id: 2, a: blob([1, 2], 128) },
    ],
    { a: blob([1, 2], 128) },
    [2],
  ),
  query(
    "a long equals the number",
    [
      { _id: 1, a: Long.fromNumber(5) },
      { _id: 2, a: 6 },
    ],
    { a: 5 },
    [1],
  ),
  query(
    "an embedded document is equal only with its fields in order",
    [
      { _id: 1, a: { x: 1, y: 2 } },
      { _id: 2, a: { y: 2, x: 1 } },
    ],
    { a: { x: 1, y: 2 } },
    [1],
  ),
  query(
    "$gte null finds null and missing",
    [{ _id: 1, a: null }, { _id: 2 }, { _id: 3, a: 1 }],
    { a: { $gte: null } },
    [1, 2],
  ),
  query(
    "null on a path into an array finds the element without the field",
    [
      { _id: 1, a: [{ b: 1 }, {}] },
      { _id: 2, a: [{ b: 1 }] },
    ],
    { "a.b": null },
    [1],
  ),
  {
    title: "an ObjectId sorts before a date",
    given: [
      { _id: 1, a: new Date(0) },
      { _id: 2, a: anyId },
    ],
    when: async (collection) => (await collection.find().sort({ a: 1 }).toArray()).map(({ _id }) => _id),
    gives: [2, 1],
  },
];

const refusalsThatAreWrong: Case[] = [
  {
    title: "$setOnInsert works on an insert",
    when: async (collection) => {
      await collection.updateOne({ _id: 1 as never }, { $set: { a: 1 }, $setOnInsert: { b: 2 } }, { upsert: true });
      return collection.findOne();
    },
    gives: { _id: 1, a: 1, b: 2 },
  },
  update("$set of the same _id is no change of it", { a: 1 }, { $set: { _id: 1, a: 2 } }, { a: 2 }),
];

const modifiedCounts: Case[] = [
  {
    title: "a $set that changes nothing modifies nothing",
    given: [{ _id: 1, a: { b: [1, { c: "x" }] } }],
    when: async (collection) =>
      (await collection.updateOne({ _id: 1 as never }, { $set: { a: { b: [1, { c: "x" }] } } })).modifiedCount,
    gives: 0,
  },
  {
    title: "a $set that only swaps two values is a change",
    given: [{ _id: 1, a: "x", b: "y" }],
    when: async (collection) => {
      const { modifiedCount } = await collection.updateOne({ _id: 1 as never }, { $set: { a: "y", b: "x" } });
      return { modifiedCount, after: await all(collection) };
    },
    gives: { modifiedCount: 1, after: [{ _id: 1, a: "y", b: "x" }] },
  },
];

describe("dialect: faults of other engines", () => {
  const open = useDatabase();
  describe("changes that are lost", () => defineCases(open, changesThatAreDropped));
  describe("comparisons", () => defineCases(open, comparisons));
  describe("refusals that are wrong", () => defineCases(open, refusalsThatAreWrong));
  describe("modified counts", () => defineCases(open, modifiedCounts));
});
