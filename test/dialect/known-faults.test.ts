import { Binary, Long, ObjectId } from "mongodb";
import { all, type Case, defineCases, pipeline, query, refusedUpdate, update, useDatabase } from "./support.ts";

/**
 * What in-memory query engines were seen to get wrong, and MongoDB gets right. Each has its name here, so that a fault that
 * comes back is known by it.
 */

const blob = (bytes: number[], subtype = 0) => new Binary(Buffer.from(bytes), subtype);
const anyId = new ObjectId("65a000000000000000000001");

const readsThatCorrupt: Case[] = [
  {
    title: "a pipeline's $set of a nested field leaves the stored document alone",
    given: [{ _id: 1, a: { b: 1 } }],
    when: async (collection) => {
      await collection.aggregate([{ $set: { "a.b": 2 } }]).toArray();
      return collection.findOne();
    },
    gives: { _id: 1, a: { b: 1 } },
  },
  {
    title: "a pipeline's $unset of a nested field leaves the stored document alone",
    given: [{ _id: 1, a: { b: 1, c: 2 } }],
    when: async (collection) => {
      await collection.aggregate([{ $unset: "a.b" }]).toArray();
      return collection.findOne();
    },
    gives: { _id: 1, a: { b: 1, c: 2 } },
  },
  {
    title: "a pipeline's stages on an array's documents leave the stored ones alone",
    given: [{ _id: 1, a: [{ b: 1 }, { b: 2 }] }],
    when: async (collection) => {
      await collection.aggregate([{ $addFields: { "a.c": 9 } }, { $project: { "a.b": 0 } }]).toArray();
      return collection.findOne();
    },
    gives: { _id: 1, a: [{ b: 1 }, { b: 2 }] },
  },
];

const arraysThatAreMissing: Case[] = [
  update(
    "$push with $slice on a missing array slices",
    {},
    { $push: { a: { $each: [1, 2, 3], $slice: -2 } } } as never,
    { a: [2, 3] },
  ),
  update("$push with $sort on a missing array sorts", {}, { $push: { a: { $each: [3, 1, 2], $sort: 1 } } } as never, {
    a: [1, 2, 3],
  }),
  update(
    "$push sorts by both of two keys",
    { a: [{ x: 1, y: 1 }] },
    {
      $push: {
        a: {
          $each: [
            { x: 1, y: 3 },
            { x: 0, y: 2 },
          ],
          $sort: { x: 1, y: -1 },
        },
      },
    } as never,
    {
      a: [
        { x: 0, y: 2 },
        { x: 1, y: 3 },
        { x: 1, y: 1 },
      ],
    },
  ),
  update(
    "$addToSet with $each on a missing array leaves no duplicates",
    {},
    { $addToSet: { a: { $each: [1, 1, 2] } } },
    { a: [1, 2] },
  ),
];

const changesThatAreDropped: Case[] = [
  refusedUpdate("$inc of a string is refused", { a: "1" }, { $inc: { a: 1 } }, 14),
  refusedUpdate("$inc of null is refused", { a: null }, { $inc: { a: 1 } }, 14),
  refusedUpdate("$push on a scalar is refused", { a: 1 }, { $push: { a: 2 } } as never, 2),
  refusedUpdate("$set through a scalar is refused", { a: 1 }, { $set: { "a.b": 2 } }, 28),
  refusedUpdate("$set through null is refused and does not overwrite it", { a: null }, { $set: { "a.b": 2 } }, 28),
];

const parts = {
  parts: [{ _id: 1, order: 1, n: 1 }, { _id: 2, order: 1, n: 2 }, { _id: 3, order: 2, n: 1 }, { _id: 4 }],
};

const joins: Case[] = [
  {
    title: "$lookup with fields and a pipeline applies both",
    given: [{ _id: 1, key: 1 }],
    when: async (collection, db) => {
      const foreign = db.collection(`${collection.collectionName}_parts`);
      await foreign.insertMany(parts.parts.map((part) => ({ ...part })) as never[]);
      const lookup = {
        from: foreign.collectionName,
        localField: "key",
        foreignField: "order",
        pipeline: [{ $match: { n: 1 } }],
        as: "found",
      };
      return collection.aggregate([{ $lookup: lookup }]).toArray();
    },
    gives: [{ _id: 1, key: 1, found: [{ _id: 1, order: 1, n: 1 }] }],
  },
  {
    title: "$lookup with an array of local values finds what each of them finds, and nothing more",
    given: [{ _id: 1, keys: [1, 2] }],
    when: async (collection, db) => {
      const foreign = db.collection(`${collection.collectionName}_parts`);
      await foreign.insertMany(parts.parts.map((part) => ({ ...part })) as never[]);
      const lookup = { from: foreign.collectionName, localField: "keys", foreignField: "order", as: "found" };
      return collection.aggregate([{ $lookup: lookup }, { $project: { "found._id": 1 } }]).toArray();
    },
    gives: [{ _id: 1, found: [{ _id: 1 }, { _id: 2 }, { _id: 3 }] }],
  },
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
    "a long beyond 2^53 is compared exactly",
    [
      { _id: 1, a: Long.fromString("9007199254740993") },
      { _id: 2, a: Long.fromString("9007199254740992") },
    ],
    { a: { $gt: Long.fromString("9007199254740992") } },
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
  query(
    "in $expr a missing field is less than a number",
    [{ _id: 1 }, { _id: 2, a: 3 }],
    { $expr: { $lt: ["$a", 2] } },
    [1],
  ),
  query(
    "$type objectId finds ObjectIds",
    [
      { _id: 1, a: anyId },
      { _id: 2, a: String(anyId) },
    ],
    { a: { $type: "objectId" } },
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
  {
    title: "a find with only $slice keeps the other fields",
    given: [{ _id: 1, a: [1, 2, 3], b: "kept" }],
    when: (collection) => collection.findOne({}, { projection: { a: { $slice: 1 } } }),
    gives: { _id: 1, a: [1], b: "kept" },
  },
];

const sales = [
  { _id: 1, k: "a", n: 1 },
  { _id: 2, k: "a", n: 5 },
  { _id: 3, k: "b", n: 2 },
];

const shapes: Case[] = [
  pipeline(
    "$top gives the value, not an array of it",
    sales,
    [{ $group: { _id: "$k", best: { $top: { sortBy: { n: -1 }, output: "$n" } } } }, { $sort: { _id: 1 } }],
    [
      { _id: "a", best: 5 },
      { _id: "b", best: 2 },
    ],
  ),
  pipeline(
    "$arrayToObject takes a literal array of pairs",
    [{ _id: 1 }],
    [
      {
        $project: {
          o: {
            $arrayToObject: {
              $literal: [
                ["a", 1],
                ["b", 2],
              ],
            },
          },
        },
      },
    ],
    [{ _id: 1, o: { a: 1, b: 2 } }],
  ),
  pipeline(
    "$project keeps the document's order for what it includes, and adds what it computes at the end",
    [{ _id: 1, x: 1, y: 2, z: 3 }],
    [{ $project: { sum: { $add: ["$x", "$y"] }, z: 1, x: 1 } }],
    [{ _id: 1, x: 1, z: 3, sum: 3 }],
  ),
  pipeline(
    "$bucket puts the _id first",
    sales,
    [{ $bucket: { groupBy: "$n", boundaries: [0, 2, 10], output: { n: { $sum: 1 }, all: { $push: "$n" } } } }],
    [
      { _id: 0, n: 1, all: [1] },
      { _id: 2, n: 2, all: [5, 2] },
    ],
  ),
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
  update(
    "two fields of one matched element are no conflict",
    { a: [{ k: 1 }, { k: 2 }] },
    { $set: { "a.$.s": 1, "a.$.t": 2 } },
    { a: [{ k: 1 }, { k: 2, s: 1, t: 2 }] },
    { filter: { "a.k": 2 } },
  ),
  update(
    "two fields of the elements of one array filter are no conflict",
    { a: [{ k: 1 }, { k: 2 }] },
    { $set: { "a.$[e].s": 1 }, $inc: { "a.$[e].t": 2 } },
    { a: [{ k: 1 }, { k: 2, s: 1, t: 2 }] },
    { arrayFilters: [{ "e.k": 2 }] },
  ),
  update(
    "the positional operator takes the element that $elemMatch found by two conditions",
    {
      a: [
        { x: 1, y: 1 },
        { x: 1, y: 2 },
      ],
    },
    { $set: { "a.$.z": 9 } },
    {
      a: [
        { x: 1, y: 1 },
        { x: 1, y: 2, z: 9 },
      ],
    },
    { filter: { a: { $elemMatch: { x: 1, y: 2 } } } },
  ),
  update(
    "the positional operator works on a nested path",
    { b: { a: [{ k: 1 }, { k: 2 }] } },
    { $set: { "b.a.$.s.t": 1 } },
    { b: { a: [{ k: 1 }, { k: 2, s: { t: 1 } }] } },
    { filter: { "b.a.k": 2 } },
  ),
  update(
    "an array filter may have $or",
    { a: [1, 5, 9] },
    { $set: { "a.$[e]": 0 } },
    { a: [0, 5, 0] },
    { arrayFilters: [{ $or: [{ e: { $lt: 2 } }, { e: { $gt: 8 } }] }] },
  ),
  update("$set of the same _id is no change of it", { a: 1 }, { $set: { _id: 1, a: 2 } }, { a: 2 }),
];

const modifiedCounts: Case[] = [
  {
    title: "a pipeline update that changes nothing modifies nothing",
    given: [{ _id: 1, a: { b: [1, { c: "x" }] } }],
    when: async (collection) =>
      (await collection.updateOne({ _id: 1 as never }, [{ $set: { a: "$a" } }])).modifiedCount,
    gives: 0,
  },
  {
    title: "a pipeline update that only swaps two values is a change",
    given: [{ _id: 1, a: "x", b: "y" }],
    when: async (collection) => {
      const { modifiedCount } = await collection.updateOne({ _id: 1 as never }, [{ $set: { a: "$b", b: "$a" } }]);
      return { modifiedCount, after: await all(collection) };
    },
    gives: { modifiedCount: 1, after: [{ _id: 1, a: "y", b: "x" }] },
  },
];

describe("dialect: faults of other engines", () => {
  const open = useDatabase();
  describe("reads that corrupt", () => defineCases(open, readsThatCorrupt));
  describe("arrays that are missing", () => defineCases(open, arraysThatAreMissing));
  describe("changes that are dropped", () => defineCases(open, changesThatAreDropped));
  describe("joins", () => defineCases(open, joins));
  describe("comparisons", () => defineCases(open, comparisons));
  describe("shapes of output", () => defineCases(open, shapes));
  describe("refusals that are wrong", () => defineCases(open, refusalsThatAreWrong));
  describe("modified counts", () => defineCases(open, modifiedCounts));
});
