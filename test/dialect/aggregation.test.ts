import { type Document, Double, Long } from "mongodb";
import { type Case, defineCases, pipeline, useDatabase } from "./support.ts";

const sales: Document[] = [
  { _id: 1, item: "a", qty: 2, day: 1 },
  { _id: 2, item: "b", qty: 5, day: 2 },
  { _id: 3, item: "a", qty: 3 },
  { _id: 4, item: "b", qty: null },
];

/** The groups of the sales by an expression, in the order of the _ids. */
const grouped = (title: string, _id: unknown, sum: unknown, gives: Document[]): Case =>
  pipeline(title, sales, [{ $group: { _id, value: { $sum: sum } } }, { $sort: { _id: 1 } }], gives);

const rejectedGroup = (title: string, group: Document, fails: number | number[]): Case => ({
  title,
  given: sales,
  when: (collection) => collection.aggregate([{ $group: group }]).toArray(),
  fails,
});

const stages: Case[] = [
  pipeline(
    "$match, $sort and $limit in turn",
    sales,
    [{ $match: { qty: { $gt: 1 } } }, { $sort: { qty: -1 } }, { $limit: 1 }, { $project: { _id: 1 } }],
    [{ _id: 2 }],
  ),
  pipeline(
    "stages after a $group see what it made",
    sales,
    [
      { $group: { _id: "$item", n: { $sum: 1 } } },
      { $match: { _id: "b" } },
      { $sort: { n: 1 } },
      { $project: { n: 1 } },
    ],
    [{ _id: "b", n: 2 }],
  ),
  {
    title: "a stage that there is not is refused",
    given: [{ _id: 1 }],
    when: (collection) => collection.aggregate([{ $nonsense: {} }]).toArray(),
    fails: 40_324,
  },
  {
    title: "a limit of zero is refused",
    given: [{ _id: 1 }],
    when: (collection) => collection.aggregate([{ $limit: 0 }]).toArray(),
    fails: 15_958,
  },
];

const groups: Case[] = [
  grouped("$sum adds numbers, and passes over null and missing", "$item", "$qty", [
    { _id: "a", value: 5 },
    { _id: "b", value: 5 },
  ]),
  grouped("$sum of a number counts", "$item", 1, [
    { _id: "a", value: 2 },
    { _id: "b", value: 2 },
  ]),
  grouped("a path that is missing is the group of null", "$day", 1, [
    { _id: null, value: 2 },
    { _id: 1, value: 1 },
    { _id: 2, value: 1 },
  ]),
  grouped("null is one group of all", null, "$qty", [{ _id: null, value: 10 }]),
  grouped("a document of paths groups by all of them, without those that are missing", { i: "$item", d: "$day" }, 1, [
    { _id: { i: "a" }, value: 1 },
    { _id: { i: "a", d: 1 }, value: 1 },
    { _id: { i: "b" }, value: 1 },
    { _id: { i: "b", d: 2 }, value: 1 },
  ]),
  pipeline(
    "numbers of all types make one group",
    [
      { _id: 1, n: 2 },
      { _id: 2, n: new Double(2) },
      { _id: 3, n: Long.fromNumber(2) },
    ],
    [{ $match: { _id: { $in: [1, 2, 3] } } }, { $sort: { _id: 1 } }, { $group: { _id: "$n", count: { $sum: 1 } } }],
    [{ _id: 2, count: 3 }],
  ),
  pipeline(
    "a sum of ints goes beyond 32 bits",
    [
      { _id: 1, i: 2_147_483_647 },
      { _id: 2, i: 1 },
    ],
    [{ $group: { _id: null, i: { $sum: "$i" } } }],
    [{ _id: null, i: 2_147_483_648 }],
  ),
  rejectedGroup("a group without _id is refused", { n: { $sum: 1 } }, 15_955),
  rejectedGroup("an accumulator that there is not is refused", { _id: null, n: { $nonsense: 1 } }, 15_952),
  rejectedGroup("a field that is no accumulator is refused", { _id: null, n: 1 }, 40_234),
  rejectedGroup("an expression that there is not is refused", { _id: { $nonsense: 1 } }, [168, 31_325]),
  rejectedGroup("two accumulators at one place are refused", { _id: null, n: { $sum: 1, $max: 1 } }, 40_238),
];

const spaces = [
  { _id: 1, t: "a", s: "y" },
  { _id: 2, t: "a", s: "x" },
  { _id: 3, t: "a", s: "y" },
  { _id: 4, t: "a" },
  { _id: 5, t: "a", s: "" },
  { _id: 6, t: "a", s: "xx" },
  { _id: 7, t: "b", s: "z" },
  { _id: 8, t: "a", s: "x\0y" },
];

/** The first values of an index by a `$group`. */
const values = (title: string, limit: Document[], gives: string[]): Case => ({
  title,
  given: spaces,
  when: async (collection) => {
    await collection.createIndex({ t: 1, s: 1, _id: 1 });
    const match = { $match: { t: "a", s: { $gt: "" } } };
    const found = await collection.aggregate([match, { $group: { _id: "$s" } }, ...limit]).toArray();
    return found.map(({ _id }) => _id).sort();
  },
  gives,
});

/** The values at first, and after each of some writes. */
const followed: Case = {
  title: "follow what is written",
  given: spaces,
  async when(collection) {
    await collection.createIndex({ t: 1, s: 1, _id: 1 });
    const pipeline = [{ $match: { t: "a", s: { $gt: "" } } }, { $group: { _id: "$s" } }];
    const valuesNow = async () => (await collection.aggregate(pipeline).toArray()).map(({ _id }) => _id).sort();
    const found = [await valuesNow()];
    const writes = [
      () => collection.insertOne({ _id: 9 as never, t: "a", s: "new" }),
      () => collection.updateOne({ _id: 9 as never }, { $set: { s: "moved" } }),
      () => collection.updateOne({ _id: 6 as never }, { $set: { other: 1 } }),
      () => collection.deleteOne({ _id: 6 as never }),
    ];
    for (const write of writes) {
      await write();
      found.push(await valuesNow());
    }
    return found;
  },
  gives: [
    ["x", "x\0y", "xx", "y"],
    ["new", "x", "x\0y", "xx", "y"],
    ["moved", "x", "x\0y", "xx", "y"],
    ["moved", "x", "x\0y", "xx", "y"],
    ["moved", "x", "x\0y", "y"],
  ],
};

const songs: Document[] = [
  { _id: 1, by: "ann" },
  { _id: 2, by: "bob" },
  { _id: 3, by: "nobody" },
  { _id: "ann", age: 40, town: "Ulm" },
  { _id: "bob", age: 50 },
];

/** Songs with who they are by, who are in the same collection. */
const joined = (title: string, more: Document, gives: Document[]): Case => ({
  title,
  given: songs,
  when: (collection) => {
    const lookup = { from: collection.collectionName, localField: "by", foreignField: "_id", as: "singer", ...more };
    return collection.aggregate([{ $match: { _id: { $lt: 4 } } }, { $lookup: lookup }]).toArray();
  },
  gives,
});

/** The first of them, each with one singer. */
const unwound = (
  title: string,
  unwind: string | Document,
  gives: Document[],
  more: Document = {},
  limit = 3,
): Case => ({
  title,
  given: songs,
  when: (collection) => {
    const lookup = { from: collection.collectionName, localField: "by", foreignField: "_id", as: "singer", ...more };
    const stages = [{ $lookup: lookup }, { $unwind: unwind }, { $limit: limit }];
    return collection.aggregate([{ $match: { _id: { $lt: 4 } } }, ...stages]).toArray();
  },
  gives,
});

const joins: Case[] = [
  joined("$lookup adds the documents of a field's value, none where there are none", {}, [
    { _id: 1, by: "ann", singer: [{ _id: "ann", age: 40, town: "Ulm" }] },
    { _id: 2, by: "bob", singer: [{ _id: "bob", age: 50 }] },
    { _id: 3, by: "nobody", singer: [] },
  ]),
  joined(
    "$lookup adds what a pipeline makes of them",
    { pipeline: [{ $match: { age: { $gt: 45 } } }, { $project: { age: 1 } }] },
    [
      { _id: 1, by: "ann", singer: [] },
      { _id: 2, by: "bob", singer: [{ _id: "bob", age: 50 }] },
      { _id: 3, by: "nobody", singer: [] },
    ],
  ),
  {
    title: "$lookup adds several documents of one value",
    given: [
      { _id: 1, by: "ann" },
      { _id: 2, who: "ann" },
      { _id: 3, who: "ann" },
    ],
    when: (collection) => {
      const lookup = { from: collection.collectionName, localField: "by", foreignField: "who", as: "all" };
      return collection.aggregate([{ $match: { _id: 1 } }, { $lookup: lookup }]).toArray();
    },
    gives: [
      {
        _id: 1,
        by: "ann",
        all: [
          { _id: 2, who: "ann" },
          { _id: 3, who: "ann" },
        ],
      },
    ],
  },
  unwound("$unwind takes the documents that have one", "$singer", [
    { _id: 1, by: "ann", singer: { _id: "ann", age: 40, town: "Ulm" } },
    { _id: 2, by: "bob", singer: { _id: "bob", age: 50 } },
  ]),
  unwound("$unwind keeps the others where that is asked for", { path: "$singer", preserveNullAndEmptyArrays: true }, [
    { _id: 1, by: "ann", singer: { _id: "ann", age: 40, town: "Ulm" } },
    { _id: 2, by: "bob", singer: { _id: "bob", age: 50 } },
    { _id: 3, by: "nobody" },
  ]),
  unwound(
    "$limit counts those alone for which a $lookup has found something",
    "$singer",
    [{ _id: 2, by: "bob", singer: { _id: "bob", age: 50 } }],
    { pipeline: [{ $match: { $or: [{ age: 50 }, { town: "Bonn" }] } }, { $project: { age: 1 } }] },
    1,
  ),
  unwound(
    "$limit ends what a $lookup adds to",
    "$singer",
    [{ _id: 1, by: "ann", singer: { _id: "ann", age: 40 } }],
    {
      pipeline: [{ $project: { age: 1 } }],
    },
    1,
  ),
  {
    title: "$unwind adds each of several documents alone",
    given: [
      { _id: 1, by: "ann" },
      { _id: 2, who: "ann" },
      { _id: 3, who: "ann" },
    ],
    when: (collection) => {
      const lookup = { from: collection.collectionName, localField: "by", foreignField: "who", as: "one" };
      return collection.aggregate([{ $match: { _id: 1 } }, { $lookup: lookup }, { $unwind: "$one" }]).toArray();
    },
    gives: [
      { _id: 1, by: "ann", one: { _id: 2, who: "ann" } },
      { _id: 1, by: "ann", one: { _id: 3, who: "ann" } },
    ],
  },
  {
    title: "$lookup in a collection that is not there adds nothing",
    given: [{ _id: 1, by: "ann" }],
    when: (collection) =>
      collection.aggregate([{ $lookup: { from: "none", localField: "by", foreignField: "_id", as: "all" } }]).toArray(),
    gives: [{ _id: 1, by: "ann", all: [] }],
  },
  {
    title: "$unionWith adds what another pipeline gives, at the end",
    given: songs,
    when: (collection) => {
      const pipeline = [{ $match: { age: 50 } }, { $project: { age: 1 } }];
      const union = { $unionWith: { coll: collection.collectionName, pipeline } };
      return collection.aggregate([{ $match: { _id: 1 } }, union]).toArray();
    },
    gives: [
      { _id: 1, by: "ann" },
      { _id: "bob", age: 50 },
    ],
  },
  {
    title: "a $lookup that does not say where is refused",
    given: [{ _id: 1 }],
    when: (collection) => collection.aggregate([{ $lookup: { from: "a", localField: "b", as: "c" } }]).toArray(),
    fails: [9, 40_415],
  },
  {
    title: "a $unionWith without a collection is refused",
    given: [{ _id: 1 }],
    when: (collection) => collection.aggregate([{ $unionWith: { pipeline: [{ $match: {} }] } }]).toArray(),
    fails: [9, 14, 40_414],
  },
];

describe("dialect: aggregation", () => {
  const open = useDatabase();
  describe("stages", () => defineCases(open, stages));
  describe("groups", () => defineCases(open, groups));
  describe("groups of a field alone", () =>
    defineCases(open, [
      values("have each value once", [], ["x", "x\0y", "xx", "y"]),
      values("are all there below a limit", [{ $limit: 5 }], ["x", "x\0y", "xx", "y"]),
      values("end at a limit", [{ $limit: 1 }], ["x"]),
      followed,
    ]));
  describe("joins", () => defineCases(open, joins));
});
