import { Double, Long } from "mongodb";
import { type Case, defineCases, query, useDatabase } from "./support.ts";

const numbers = [
  { _id: 1, a: 1 },
  { _id: 2, a: 2 },
  { _id: 3, a: 3 },
  { _id: 4, a: "2" },
  { _id: 5, a: null },
  { _id: 6 },
];

const comparison: Case[] = [
  query("equality", numbers, { a: 2 }, [2]),
  query("$ne finds other values, null and missing", numbers, { a: { $ne: 2 } }, [1, 3, 4, 5, 6]),
  query("$gt stays within the type", numbers, { a: { $gt: 1 } }, [2, 3]),
  query("$lte and $gte together are a range", numbers, { a: { $gte: 1, $lte: 2 } }, [1, 2]),
  query("$in", numbers, { a: { $in: [1, "2"] } }, [1, 4]),
  query("$in with null finds missing too", numbers, { a: { $in: [null, 3] } }, [3, 5, 6]),
  query("an empty $in finds nothing", numbers, { a: { $in: [] } }, []),
  query("null finds null and missing", numbers, { a: null }, [5, 6]),
  query("$ne null finds neither", numbers, { a: { $ne: null } }, [1, 2, 3, 4]),
  query("$gt null finds nothing", numbers, { a: { $gt: null } }, []),
  query(
    "NaN equals only itself",
    [
      { _id: 1, a: Number.NaN },
      { _id: 2, a: 0 },
    ],
    { a: Number.NaN },
    [1],
  ),
  query(
    "numbers of all types are equal",
    [
      { _id: 1, a: Long.fromNumber(2) },
      { _id: 2, a: new Double(2) },
      { _id: 3, a: 2 },
    ],
    { a: 2 },
    [1, 2, 3],
  ),
  query(
    "NaN is in no range",
    [
      { _id: 1, a: Number.NaN },
      { _id: 2, a: 5 },
    ],
    { a: { $lt: 10 } },
    [2],
  ),
  query(
    "dates compare",
    [
      { _id: 1, a: new Date(1000) },
      { _id: 2, a: new Date(2000) },
      { _id: 3, a: 1500 },
    ],
    { a: { $gt: new Date(1000) } },
    [2],
  ),
  query(
    "strings compare by their bytes",
    [
      { _id: 1, a: "Z" },
      { _id: 2, a: "a" },
      { _id: 3, a: "é" },
    ],
    { a: { $gt: "Z" } },
    [2, 3],
  ),
  query(
    "booleans are not numbers",
    [
      { _id: 1, a: true },
      { _id: 2, a: 1 },
    ],
    { a: true },
    [1],
  ),
  query(
    "a document equals only the whole document",
    [
      { _id: 1, a: { x: 1 } },
      { _id: 2, a: { x: 1, y: 2 } },
    ],
    { a: { x: 1 } },
    [1],
  ),
];

const paths: Case[] = [
  query(
    "a dotted path goes into documents",
    [
      { _id: 1, a: { b: 1 } },
      { _id: 2, a: { b: 2 } },
      { _id: 3, a: 1 },
    ],
    { "a.b": 1 },
    [1],
  ),
  query(
    "a dotted path goes into the documents of an array",
    [
      { _id: 1, a: [{ b: 1 }, { b: 2 }] },
      { _id: 2, a: [{ b: 3 }] },
    ],
    { "a.b": 2 },
    [1],
  ),
  query(
    "a number in a path is a position",
    [
      { _id: 1, a: [5, 6] },
      { _id: 2, a: [6, 5] },
    ],
    { "a.0": 5 },
    [1],
  ),
  query(
    "a number in a path may be a field's name",
    [
      { _id: 1, a: { 0: 5 } },
      { _id: 2, a: [6] },
    ],
    { "a.0": 5 },
    [1],
  ),
  query("a path through a position", [{ _id: 1, a: [{ b: 1 }, { b: 2 }] }], { "a.1.b": 2 }, [1]),
  query(
    "null on a path finds a scalar on the way",
    [
      { _id: 1, a: 5 },
      { _id: 2, a: { b: 1 } },
      { _id: 3, a: { c: 1 } },
    ],
    { "a.b": null },
    [1, 3],
  ),
  query(
    "null on a path does not find an empty array",
    [
      { _id: 1, a: [] },
      { _id: 2, a: [{}] },
      { _id: 3, a: [5] },
    ],
    { "a.b": null },
    [2],
  ),
  query("the _id is a field like others", [{ _id: 1 }, { _id: 2 }], { _id: { $gt: 1 } }, [2]),
];

const arrays = [
  { _id: 1, a: [1, 2, 3] },
  { _id: 2, a: [3, 4] },
  { _id: 3, a: [] },
  { _id: 4, a: 3 },
  { _id: 5, a: [[1, 2], 5] },
];

const arrayQueries: Case[] = [
  query("a value finds the array that contains it", arrays, { a: 3 }, [1, 2, 4]),
  query("an array finds the same array, also as an element", arrays, { a: [1, 2] }, [5]),
  query("an array is compared with its order", arrays, { a: [3, 2, 1] }, []),
  query("conditions on an array may be met by different elements", arrays, { a: { $gt: 2, $lt: 2 } }, [1]),
  query(
    "$elemMatch on documents",
    [
      {
        _id: 1,
        a: [
          { x: 1, y: 2 },
          { x: 2, y: 1 },
        ],
      },
      { _id: 2, a: [{ x: 1, y: 1 }] },
    ],
    { a: { $elemMatch: { x: 1, y: 1 } } },
    [2],
  ),
  query(
    "$elemMatch with $or inside",
    [
      { _id: 1, a: [{ x: 1 }] },
      { _id: 2, a: [{ y: 1 }] },
      { _id: 3, a: [{ z: 1 }] },
    ],
    { a: { $elemMatch: { $or: [{ x: 1 }, { y: 1 }] } } },
    [1, 2],
  ),
  query("$ne on an array means that no element is it", arrays, { a: { $ne: 3 } }, [3, 5]),
  query("$not turns a whole condition round", arrays, { a: { $not: { $gt: 3 } } }, [1, 3, 4]),
];

const kinds = [
  { _id: 1, a: 1 },
  { _id: 2, a: 1.5 },
  { _id: 3, a: Long.fromNumber(1) },
  { _id: 4, a: "x" },
  { _id: 5, a: [1] },
  { _id: 6, a: {} },
  { _id: 7, a: null },
  { _id: 8 },
  { _id: 9, a: true },
  { _id: 10, a: new Date(0) },
];

const elements: Case[] = [
  query("$exists true finds null", kinds, { a: { $exists: true } }, [1, 2, 3, 4, 5, 6, 7, 9, 10]),
  query("$exists false finds the missing", kinds, { a: { $exists: false } }, [8]),
  query(
    "$exists on a path into an array",
    [
      { _id: 1, a: [{ b: 1 }, {}] },
      { _id: 2, a: [{}] },
    ],
    { "a.b": { $exists: true } },
    [1],
  ),
];

const others: Case[] = [
  query("$and", numbers, { $and: [{ a: { $gt: 1 } }, { a: { $lt: 3 } }] }, [2]),
  query("$or", numbers, { $or: [{ a: 1 }, { a: "2" }] }, [1, 4]),
  query(
    "logical operators nest",
    numbers,
    { $or: [{ $and: [{ a: 1 }, { _id: 1 }] }, { a: { $not: { $exists: true } } }] },
    [1, 6],
  ),
  query("an empty filter finds all", numbers, {}, [1, 2, 3, 4, 5, 6]),
];

describe("dialect: queries", () => {
  const open = useDatabase();
  describe("comparison", () => defineCases(open, comparison));
  describe("paths", () => defineCases(open, paths));
  describe("arrays", () => defineCases(open, arrayQueries));
  describe("elements and types", () => defineCases(open, elements));
  describe("logic", () => defineCases(open, others));
});
