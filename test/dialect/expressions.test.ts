import { Binary, Decimal128, type Document, Long, ObjectId } from "mongodb";
import { type Case, defineCases, expression, pipeline, refusedExpression, useDatabase } from "./support.ts";

const arithmetic: Case[] = [
  expression("$add of nothing is zero", {}, { $add: [] }, 0),
  expression("$add of null is null", { a: null }, { $add: ["$a", 1] }, null),
  expression("$add of a date and a number is a date", { a: new Date(1000) }, { $add: ["$a", 500] }, new Date(1500)),
  expression(
    "$subtract of dates is their distance",
    { a: new Date(3000) },
    { $subtract: ["$a", new Date(1000)] },
    2000,
  ),
  expression("$add of ints beyond 32 bits is long", {}, { $type: { $add: [2_147_483_647, 1] } }, "long"),
  expression("$divide of ints is double", {}, { $type: { $divide: [4, 2] } }, "double"),
  expression(
    "$add of decimals is exact",
    { a: Decimal128.fromString("0.1") },
    { $add: ["$a", Decimal128.fromString("0.2")] },
    Decimal128.fromString("0.3"),
  ),
  expression(
    "$divide of a decimal is a decimal",
    { a: Decimal128.fromString("1") },
    { $divide: ["$a", 4] },
    Decimal128.fromString("0.25"),
  ),
  expression("$mod takes the sign of the dividend", {}, { $mod: [-7, 3] }, -1),
  expression("$mod of a double", {}, { $mod: [5.5, 2] }, 1.5),
  expression("$floor and $ceil", { a: -1.5 }, [{ $floor: "$a" }, { $ceil: "$a" }], [-2, -1]),
  expression(
    "$round goes to even at the half",
    {},
    [{ $round: [2.5, 0] }, { $round: [3.5, 0] }, { $round: [1.255, 1] }],
    [2, 4, 1.3],
  ),
  expression("$trunc at a place", {}, [{ $trunc: [-3.79, 1] }, { $trunc: [1234, -2] }], [-3.7, 1200]),
  expression("$abs, $sqrt, $pow", {}, [{ $abs: -3 }, { $sqrt: 16 }, { $pow: [2, 10] }], [3, 4, 1024]),
  refusedExpression("$sqrt of less than zero", {}, { $sqrt: -1 }, 28_714),
  refusedExpression("$mod by zero", {}, { $mod: [5, 0] }, [2, 16_610]),
  refusedExpression("$multiply of a string", { a: "x" }, { $multiply: ["$a", 2] }, [14, 16_555]),
];

const comparison: Case[] = [
  expression("$cmp orders", {}, [{ $cmp: [1, 2] }, { $cmp: ["b", "a"] }, { $cmp: [1, 1] }], [-1, 1, 0]),
  expression("types compare by their order", { a: "x" }, { $gt: ["$a", 1_000_000] }, true),
  expression("missing is not null", {}, { $eq: ["$a", null] }, false),
  expression("missing is less than null", {}, { $lt: ["$a", null] }, true),
  expression(
    "documents are equal only in the same order",
    { a: { x: 1, y: 2 } },
    { $eq: ["$a", { y: 2, x: 1 }] },
    false,
  ),
  expression(
    "binaries of different subtypes differ",
    { a: new Binary(Buffer.from([1]), 0) },
    { $eq: ["$a", new Binary(Buffer.from([1]), 128)] },
    false,
  ),
  expression("a long equals an int", { a: Long.fromNumber(7) }, { $eq: ["$a", 7] }, true),
  expression(
    "zero, null and missing are false; an empty string and NaN's like are not",
    { n: null },
    [{ $and: [0] }, { $or: ["$n", "$gone"] }, { $and: ["", []] }],
    [false, false, true],
  ),
  expression("$not of a missing field", {}, { $not: ["$a"] }, true),
  expression(
    "$let names values",
    { a: 3 },
    { $let: { vars: { b: { $add: ["$a", 1] } }, in: { $multiply: ["$$b", "$$b"] } } },
    16,
  ),
  refusedExpression("a variable that there is not", {}, "$$nothing", 17_276),
  refusedExpression("too many arguments", {}, { $eq: [1, 2, 3] }, 16_020),
  refusedExpression("two operators at one place", {}, { $add: [1], $subtract: [2, 1] }, 15_983),
  refusedExpression(
    "$switch without a branch that fits",
    {},
    { $switch: { branches: [{ case: false, then: 1 }] } },
    40_066,
  ),
];

const strings: Case[] = [
  expression("$concat joins", { a: "x" }, { $concat: ["$a", "-", "y"] }, "x-y"),
  refusedExpression("$concat of a number", { a: 1 }, { $concat: ["$a", "x"] }, 16_702),
  expression(
    "$toUpper and $toLower",
    {},
    [{ $toUpper: "abc" }, { $toLower: "ABC" }, { $toUpper: null }],
    ["ABC", "abc", ""],
  ),
  expression(
    "$substrCP counts characters",
    { a: "héllo😀" },
    [{ $substrCP: ["$a", 1, 2] }, { $substrCP: ["$a", 5, 1] }],
    ["él", "😀"],
  ),
  expression("$strLenCP and $strLenBytes", { a: "é😀" }, [{ $strLenCP: "$a" }, { $strLenBytes: "$a" }], [2, 6]),
  expression("$split", {}, { $split: ["a,b,,c", ","] }, ["a", "b", "", "c"]),
  expression(
    "$trim, of white space and of given characters",
    {},
    [{ $trim: { input: " x\n" } }, { $trim: { input: "--x-", chars: "-" } }],
    ["x", "x"],
  ),
  expression(
    "$indexOfCP",
    {},
    [{ $indexOfCP: ["abcabc", "c"] }, { $indexOfCP: ["abc", "z"] }, { $indexOfCP: ["abcabc", "a", 1] }],
    [2, -1, 3],
  ),
  expression(
    "$replaceAll takes text, not patterns",
    {},
    { $replaceAll: { input: "a.b.c", find: ".", replacement: { $literal: "$&" } } },
    "a$&b$&c",
  ),
  expression("$regexMatch", { a: "Hello" }, { $regexMatch: { input: "$a", regex: "^h", options: "i" } }, true),
  expression(
    "$regexFind tells where and what",
    { a: "ab12" },
    { $regexFind: { input: "$a", regex: "([a-z]+)(\\d)" } },
    { match: "ab1", idx: 0, captures: ["ab", "1"] },
  ),
];

const arrays: Case[] = [
  expression(
    "$slice",
    { a: [1, 2, 3, 4] },
    [{ $slice: ["$a", 2] }, { $slice: ["$a", -2] }, { $slice: ["$a", 1, 2] }],
    [
      [1, 2],
      [3, 4],
      [2, 3],
    ],
  ),
  expression(
    "$concatArrays",
    { a: [1] },
    [{ $concatArrays: ["$a", [2]] }, { $concatArrays: ["$a", null] }],
    [[1, 2], null],
  ),
  expression(
    "$range",
    {},
    [{ $range: [0, 5, 2] }, { $range: [3, 0, -1] }],
    [
      [0, 2, 4],
      [3, 2, 1],
    ],
  ),
  expression(
    "$indexOfArray and $reverseArray",
    { a: ["x", "y"] },
    [{ $indexOfArray: ["$a", "y"] }, { $reverseArray: "$a" }],
    [1, ["y", "x"]],
  ),
  expression("$zip", {}, { $zip: { inputs: [[1, 2], ["a"]], useLongestLength: true, defaults: [0, "z"] } }, [
    [1, "a"],
    [2, "z"],
  ]),
  expression("$sortArray", { a: [{ n: 2 }, { n: 1 }] }, { $sortArray: { input: "$a", sortBy: { n: 1 } } }, [
    { n: 1 },
    { n: 2 },
  ]),
  expression("$first and $last of an array", { a: [1, 2] }, [{ $first: "$a" }, { $last: "$a" }], [1, 2]),
  expression("$max and $sum over an array", { a: [1, 5, null, "x"] }, [{ $sum: "$a" }, { $avg: "$a" }], [6, 3]),
  expression(
    "$setIsSubset and $setEquals",
    {},
    [
      { $setIsSubset: [[1], [1, 2]] },
      {
        $setEquals: [
          [1, 2, 1],
          [2, 1],
        ],
      },
    ],
    [true, true],
  ),
  expression("$setDifference keeps the first's", {}, { $setDifference: [["a", "b"], ["b"]] }, ["a"]),
  expression("a path through an array gives an array", { a: [{ b: 1 }, { c: 2 }, { b: 3 }] }, "$a.b", [1, 3]),
  expression("a number in a path is no position", { a: [{ b: 1 }] }, "$a.0", []),
  expression(
    "$mergeObjects passes over null",
    { a: { x: 1 } },
    { $mergeObjects: ["$a", null, { y: 2, x: 3 }] },
    { x: 3, y: 2 },
  ),
  expression("$getField reads any name", { a: 1, "b.c": 5 }, { $getField: "b.c" }, 5),
  refusedExpression("$in of no array", { a: 1 }, { $in: [1, "$a"] }, 40_081),
  refusedExpression("$filter of no array", { a: 1 }, { $filter: { input: "$a", cond: true } }, 28_651),
];

const at = new Date("2024-02-29T13:14:15.016Z");
const id = new ObjectId("65a000000000000000000001");

const datesAndTypes: Case[] = [
  expression(
    "the parts of a date",
    { at },
    [
      { $year: "$at" },
      { $month: "$at" },
      { $dayOfMonth: "$at" },
      { $hour: "$at" },
      { $minute: "$at" },
      { $second: "$at" },
      { $millisecond: "$at" },
      { $dayOfWeek: "$at" },
      { $dayOfYear: "$at" },
    ],
    [2024, 2, 29, 13, 14, 15, 16, 5, 60],
  ),
  expression("$dateToString without a format", { at }, { $dateToString: { date: "$at" } }, "2024-02-29T13:14:15.016Z"),
  expression("$dateToString of null", {}, { $dateToString: { date: "$gone", onNull: "never" } }, "never"),
  expression(
    "$dateTrunc",
    { at },
    [
      { $dateTrunc: { date: "$at", unit: "month" } },
      { $dateTrunc: { date: "$at", unit: "hour" } },
      { $dateTrunc: { date: "$at", unit: "minute", binSize: 15 } },
    ],
    [new Date("2024-02-01T00:00:00Z"), new Date("2024-02-29T13:00:00Z"), new Date("2024-02-29T13:00:00Z")],
  ),
  expression(
    "$dateAdd of a month ends with the shorter month",
    {},
    { $dateAdd: { startDate: new Date("2023-01-31T00:00:00Z"), unit: "month", amount: 1 } },
    new Date("2023-02-28T00:00:00Z"),
  ),
  expression(
    "$dateSubtract of days",
    { at },
    { $dateSubtract: { startDate: "$at", unit: "day", amount: 1 } },
    new Date("2024-02-28T13:14:15.016Z"),
  ),
  expression(
    "$dateDiff counts boundaries",
    {},
    [
      {
        $dateDiff: {
          startDate: new Date("2023-12-31T23:59:00Z"),
          endDate: new Date("2024-01-01T00:01:00Z"),
          unit: "year",
        },
      },
      {
        $dateDiff: {
          startDate: new Date("2024-01-01T10:59:00Z"),
          endDate: new Date("2024-01-01T11:01:00Z"),
          unit: "hour",
        },
      },
    ],
    [1, 1],
  ),
  expression(
    "$dateDiff of null is null",
    {},
    { $dateDiff: { startDate: null, endDate: new Date(0), unit: "day" } },
    null,
  ),
  expression(
    "conversions to numbers",
    {},
    [{ $toInt: "42" }, { $toInt: 1.9 }, { $toDouble: "1.5" }, { $toLong: true }],
    [42, 1, 1.5, 1],
  ),
  expression(
    "conversions to text",
    { id, at },
    [{ $toString: "$id" }, { $toString: "$at" }, { $toString: true }],
    ["65a000000000000000000001", "2024-02-29T13:14:15.016Z", "true"],
  ),
  expression(
    "$toDate of an ObjectId and of text",
    { id },
    [{ $toDate: "$id" }, { $toDate: "2024-01-01" }],
    [new Date(0x65a00000 * 1000), new Date("2024-01-01T00:00:00Z")],
  ),
  expression("$toBool: any text is true, zero is not", {}, [{ $toBool: "false" }, { $toBool: 0 }], [true, false]),
  expression(
    "$convert with onError and onNull",
    {},
    [{ $convert: { input: "x", to: "int", onError: -1 } }, { $convert: { input: null, to: "int", onNull: 0 } }],
    [-1, 0],
  ),
  refusedExpression("$toInt of what is no number", { a: "x" }, { $toInt: "$a" }, 241),
  expression(
    "$type names the type",
    { a: Long.fromNumber(1), id },
    [{ $type: "$a" }, { $type: "$id" }, { $type: "$gone" }],
    ["long", "objectId", "missing"],
  ),
];

const sales: Document[] = [
  { _id: 1, k: "a", n: 1, at: new Date(1) },
  { _id: 2, k: "a", n: 3, at: new Date(3) },
  { _id: 3, k: "a", at: new Date(2) },
];
const grouped = (title: string, accumulator: Document, result: unknown): Case =>
  pipeline(
    title,
    sales,
    [{ $sort: { _id: 1 } }, { $group: { _id: "$k", value: accumulator } }],
    [{ _id: "a", value: result }],
  );

const accumulators: Case[] = [
  grouped("$push leaves missing out", { $push: "$n" }, [1, 3]),
  grouped("$first of missing is null", { $last: "$n" }, null),
  grouped("$count", { $count: {} }, 3),
  grouped("$topN", { $topN: { n: 2, sortBy: { at: -1 }, output: "$_id" } }, [2, 3]),
  grouped("$bottom", { $bottom: { sortBy: { at: -1 }, output: "$_id" } }, 1),
  grouped("$firstN", { $firstN: { n: 2, input: "$_id" } }, [1, 2]),
  grouped("$maxN", { $maxN: { n: 2, input: "$n" } }, [3, 1]),
  grouped("$mergeObjects", { $mergeObjects: { last: "$_id" } }, { last: 3 }),
  grouped("$stdDevPop", { $stdDevPop: "$n" }, 1),
  grouped("$sum of an expression", { $sum: { $cond: [{ $gt: ["$n", 2] }, 1, 0] } }, 1),
  pipeline(
    "$group by a document",
    sales,
    [{ $group: { _id: { k: "$k", gone: "$gone" }, n: { $sum: 1 } } }],
    [{ _id: { k: "a" }, n: 3 }],
  ),
  pipeline(
    "numbers of all types make one group",
    [
      { _id: 1, n: 1 },
      { _id: 2, n: Long.fromNumber(1) },
      { _id: 3, n: Decimal128.fromString("1.0") },
    ],
    [{ $group: { _id: null, keys: { $addToSet: "$n" } } }, { $project: { _id: 0, n: { $size: "$keys" } } }],
    [{ n: 1 }],
  ),
  {
    title: "an accumulator that there is not",
    given: sales,
    when: (collection) => collection.aggregate([{ $group: { _id: null, n: { $nonsense: 1 } } }]).toArray(),
    fails: 15_952,
  },
  {
    title: "$unionWith adds another collection's",
    given: [{ _id: 1 }],
    when: async (collection, db) => {
      const other = db.collection<Document>(`${collection.collectionName}_other`);
      await other.insertOne({ _id: 2 as never, a: 1 });
      return collection
        .aggregate([{ $unionWith: { coll: other.collectionName, pipeline: [{ $project: { _id: 1 } }] } }])
        .toArray();
    },
    gives: [{ _id: 1 }, { _id: 2 }],
  },
];

describe("dialect: expressions", () => {
  const open = useDatabase();
  describe("arithmetic", () => defineCases(open, arithmetic));
  describe("comparison and logic", () => defineCases(open, comparison));
  describe("strings", () => defineCases(open, strings));
  describe("arrays and documents", () => defineCases(open, arrays));
  describe("dates and types", () => defineCases(open, datesAndTypes));
  describe("groups and unions", () => defineCases(open, accumulators));
});
