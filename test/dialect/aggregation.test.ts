import type { Document } from "mongodb";
import { type Case, defineCases, expression, pipeline, refusedExpression, useDatabase } from "./support.ts";

const sales: Document[] = [
  { _id: 1, item: "a", qty: 2, tags: ["x", "y"] },
  { _id: 2, item: "b", qty: 5, tags: [] },
  { _id: 3, item: "a", qty: 3, tags: ["y"] },
  { _id: 4, item: "b", qty: null },
];

const stages: Case[] = [
  pipeline(
    "$match, $sort and $limit in turn",
    sales,
    [{ $match: { qty: { $gt: 1 } } }, { $sort: { qty: -1 } }, { $limit: 1 }, { $project: { _id: 1 } }],
    [{ _id: 2 }],
  ),
  pipeline(
    "$skip leaves the first out",
    sales,
    [{ $sort: { _id: 1 } }, { $skip: 3 }, { $project: { _id: 1 } }],
    [{ _id: 4 }],
  ),
  pipeline(
    "$group sums, and leaves null out of an average",
    sales,
    [
      { $group: { _id: "$item", sum: { $sum: "$qty" }, mean: { $avg: "$qty" }, n: { $sum: 1 } } },
      { $sort: { _id: 1 } },
    ],
    [
      { _id: "a", sum: 5, mean: 2.5, n: 2 },
      { _id: "b", sum: 5, mean: 5, n: 2 },
    ],
  ),
  pipeline(
    "$group takes first and last in the order that comes in",
    sales,
    [
      { $sort: { _id: 1 } },
      { $group: { _id: null, first: { $first: "$item" }, last: { $last: "$item" }, all: { $push: "$_id" } } },
    ],
    [{ _id: null, first: "a", last: "b", all: [1, 2, 3, 4] }],
  ),
  pipeline(
    "$group takes min and max over types by BSON order, null left out",
    sales,
    [{ $group: { _id: null, min: { $min: "$qty" }, max: { $max: "$qty" } } }],
    [{ _id: null, min: 2, max: 5 }],
  ),
  pipeline(
    "$unwind makes a document of each element, none of an empty array",
    sales,
    [{ $sort: { _id: 1 } }, { $unwind: "$tags" }, { $project: { tags: 1 } }],
    [
      { _id: 1, tags: "x" },
      { _id: 1, tags: "y" },
      { _id: 3, tags: "y" },
    ],
  ),
  pipeline(
    "$unwind keeps empty and missing ones when asked",
    sales,
    [
      { $sort: { _id: 1 } },
      { $unwind: { path: "$tags", preserveNullAndEmptyArrays: true, includeArrayIndex: "at" } },
      { $project: { at: 1 } },
      { $skip: 2 },
    ],
    [
      { _id: 2, at: null },
      { _id: 3, at: 0 },
      { _id: 4, at: null },
    ],
  ),
  pipeline("$count counts", sales, [{ $match: { item: "a" } }, { $count: "n" }], [{ n: 2 }]),
  pipeline("$count of nothing is no document", sales, [{ $match: { item: "z" } }, { $count: "n" }], []),
  pipeline(
    "$sortByCount puts the commonest first",
    [
      { _id: 1, k: "x" },
      { _id: 2, k: "y" },
      { _id: 3, k: "y" },
    ],
    [{ $sortByCount: "$k" }],
    [
      { _id: "y", count: 2 },
      { _id: "x", count: 1 },
    ],
  ),
  pipeline(
    "$facet runs pipelines over the same documents",
    sales,
    [{ $facet: { n: [{ $count: "n" }], first: [{ $sort: { _id: 1 } }, { $limit: 1 }, { $project: { item: 1 } }] } }],
    [{ n: [{ n: 4 }], first: [{ _id: 1, item: "a" }] }],
  ),
  pipeline(
    "$replaceRoot puts an embedded document in place",
    [{ _id: 1, in: { a: 1 } }],
    [{ $replaceRoot: { newRoot: "$in" } }],
    [{ a: 1 }],
  ),
  pipeline(
    "$set adds at the end, and changes in place",
    [{ _id: 1, a: 1, b: 2 }],
    [{ $set: { a: 9, c: { $add: ["$a", "$b"] } } }],
    [{ _id: 1, a: 9, b: 2, c: 3 }],
  ),
  pipeline(
    "$unset takes fields away, also inside",
    [{ _id: 1, a: { b: 1, c: 2 }, d: 3 }],
    [{ $unset: ["a.b", "d"] }],
    [{ _id: 1, a: { c: 2 } }],
  ),
  pipeline(
    "$project computes and renames",
    [{ _id: 1, a: 2 }],
    [{ $project: { _id: 0, twice: { $multiply: ["$a", 2] }, a: 1 } }],
    [{ a: 2, twice: 4 }],
  ),
  pipeline(
    "$bucket groups by boundaries",
    sales,
    [{ $match: { qty: { $ne: null } } }, { $bucket: { groupBy: "$qty", boundaries: [0, 3, 10] } }],
    [
      { _id: 0, count: 1 },
      { _id: 3, count: 2 },
    ],
  ),
  {
    title: "a stage that there is not is refused",
    given: [{ _id: 1 }],
    when: (collection) => collection.aggregate([{ $nonsense: {} }]).toArray(),
    fails: 40_324,
  },
  {
    title: "$lookup joins on equality, and gives an empty array for no match",
    given: [
      { _id: 1, to: "x" },
      { _id: 2, to: "none" },
    ],
    when: async (collection, db) => {
      const other = db.collection<Document>(`${collection.collectionName}_other`);
      await other.insertMany([
        { _id: 7, key: "x" },
        { _id: 8, key: "y" },
      ] as never);
      return collection
        .aggregate([
          { $sort: { _id: 1 } },
          { $lookup: { from: other.collectionName, localField: "to", foreignField: "key", as: "found" } },
          { $project: { to: 0 } },
        ])
        .toArray();
    },
    gives: [
      { _id: 1, found: [{ _id: 7, key: "x" }] },
      { _id: 2, found: [] },
    ],
  },
];

const expressions: Case[] = [
  expression("$cond takes the branch", { a: 5 }, { $cond: [{ $gt: ["$a", 3] }, "big", "small"] }, "big"),
  expression("$ifNull passes what is there", { a: 5 }, { $ifNull: ["$a", 0] }, 5),
  expression("$ifNull takes the place of null and missing", {}, { $ifNull: ["$a", "$b", 0] }, 0),
  expression(
    "$switch takes the first that holds",
    { a: 5 },
    {
      $switch: {
        branches: [
          { case: { $lt: ["$a", 3] }, then: 1 },
          { case: { $lt: ["$a", 9] }, then: 2 },
        ],
        default: 3,
      },
    },
    2,
  ),
  expression("$concat of a null is null", { a: null }, { $concat: ["x", "$a"] }, null),
  expression("$size counts elements", { a: [1, 2, 3] }, { $size: "$a" }, 3),
  refusedExpression("$size of no array is refused", { a: 1 }, { $size: "$a" }, 17_124),
  expression(
    "$filter keeps what fits",
    { a: [1, 5, 9] },
    { $filter: { input: "$a", as: "n", cond: { $gte: ["$$n", 5] } } },
    [5, 9],
  ),
  expression(
    "$map changes each",
    { a: [1, 2] },
    { $map: { input: "$a", as: "n", in: { $add: ["$$n", 10] } } },
    [11, 12],
  ),
  expression(
    "$reduce folds",
    { a: ["x", "y"] },
    { $reduce: { input: "$a", initialValue: "", in: { $concat: ["$$value", "$$this"] } } },
    "xy",
  ),
  expression("$arrayElemAt counts from the end too", { a: [1, 2, 3] }, { $arrayElemAt: ["$a", -1] }, 3),
  expression("$in looks for a value", { a: ["x"] }, { $in: ["x", "$a"] }, true),
  expression("$setUnion of strings", { a: ["x"], b: ["x", "y"] }, { $size: { $setUnion: ["$a", "$b"] } }, 2),
  expression("a field of missing is missing", {}, "$a.b", undefined),
  expression("$literal is not computed", {}, { $literal: "$a" }, "$a"),
  expression("$toString of a number", { a: 5 }, { $toString: "$a" }, "5"),
  expression("$type of missing", {}, { $type: "$a" }, "missing"),
  expression(
    "$dateToString in UTC",
    { at: new Date("2026-03-04T05:06:07Z") },
    { $dateToString: { date: "$at", format: "%Y-%m-%d" } },
    "2026-03-04",
  ),
  expression("$objectToArray gives keys and values", { a: { x: 1 } }, { $objectToArray: "$a" }, [{ k: "x", v: 1 }]),
  refusedExpression("an expression that there is not is refused", {}, { $nonsense: 1 }, [168, 31_325]),
  refusedExpression("$add of a string is refused", { a: "x" }, { $add: ["$a", 1] }, [14, 16_554]),
  refusedExpression("$divide by zero is refused", { a: 1 }, { $divide: ["$a", 0] }, [2, 16_608]),
];

describe("dialect: aggregation", () => {
  const open = useDatabase();
  describe("stages", () => defineCases(open, stages));
  describe("expressions", () => defineCases(open, expressions));
});
