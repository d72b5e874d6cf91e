import type { Document } from "mongodb";
import { type Case, defineCases, useDatabase } from "./support.ts";

/** This projection of the documents that the filter finds gives these. */
function projected(
  title: string,
  document: Document,
  projection: Document,
  result: Document,
  filter: Document = {},
): Case {
  return {
    title,
    given: [{ _id: 1, ...document }],
    when: (collection) => collection.findOne(filter, { projection }),
    gives: result,
  };
}

function refused(title: string, projection: Document, fails: number | readonly number[]): Case {
  const given = [{ _id: 1, a: 1, b: 2 }];
  return { title, given, when: (collection) => collection.find({}, { projection }).toArray(), fails };
}

const flat = { a: 1, b: 2, c: 3 };
const nested = { a: { x: 1, y: 2 }, b: [{ x: 1, y: 2 }, { x: 3 }, 5] };

const fields: Case[] = [
  projected("fields named come with the _id", flat, { c: 1, a: 1 }, { _id: 1, a: 1, c: 3 }),
  projected("the _id can be left out", flat, { _id: 0, b: 1 }, { b: 2 }),
  projected("the _id alone", flat, { _id: 1 }, { _id: 1 }),
  projected("all but the _id", flat, { _id: 0 }, flat),
  projected("fields left out", flat, { a: 0, c: 0 }, { _id: 1, b: 2 }),
  projected("true and false are 1 and 0", flat, { _id: false, a: true }, { a: 1 }),
  projected("an empty projection keeps all", flat, {}, { _id: 1, ...flat }),
  projected("a nested field named", nested, { "a.y": 1 }, { _id: 1, a: { y: 2 } }),
  projected("a nested field written as a document", nested, { a: { y: 1 } }, { _id: 1, a: { y: 2 } }),
  projected("a field of an array's documents named", nested, { "b.x": 1 }, { _id: 1, b: [{ x: 1 }, { x: 3 }] }),
  projected("a field of an array's documents left out", nested, { a: 0, "b.x": 0 }, { _id: 1, b: [{ y: 2 }, {}, 5] }),
  projected("a path into a scalar gives nothing", flat, { "a.x": 1 }, { _id: 1 }),
];

const numbers = { a: [1, 2, 3, 4, 5], b: "kept" };
const documents = {
  a: [
    { k: 1, v: "x" },
    { k: 2, v: "y" },
    { k: 2, v: "z" },
  ],
};

const arrays: Case[] = [
  projected("$slice takes the last", numbers, { a: { $slice: -2 } }, { _id: 1, a: [4, 5], b: "kept" }),
  projected("$slice skips and takes", numbers, { a: { $slice: [1, 2] } }, { _id: 1, a: [2, 3], b: "kept" }),
  projected("$slice skips from the end", numbers, { a: { $slice: [-3, 2] } }, { _id: 1, a: [3, 4], b: "kept" }),
  projected("$slice beside a field named", { ...numbers, c: 1 }, { c: 1, a: { $slice: 1 } }, { _id: 1, a: [1], c: 1 }),
  projected(
    "$elemMatch takes the first element that fits",
    documents,
    { a: { $elemMatch: { k: 2 } } },
    { _id: 1, a: [{ k: 2, v: "y" }] },
  ),
  projected("$elemMatch leaves the field out when none fits", documents, { a: { $elemMatch: { k: 9 } } }, { _id: 1 }),
  projected(
    "$ takes the element that matched",
    documents,
    { "a.$": 1 },
    { _id: 1, a: [{ k: 2, v: "y" }] },
    { "a.k": 2 },
  ),
  projected("$ on scalars", numbers, { "a.$": 1 }, { _id: 1, a: [4] }, { a: { $gt: 3 } }),
];

const computed: Case[] = [
  projected("an expression beside fields", flat, { a: 1, sum: { $add: ["$b", "$c"] } }, { _id: 1, a: 1, sum: 5 }),
  projected("another field's value", flat, { _id: 0, copy: "$b" }, { copy: 2 }),
  projected(
    "an expression inside a document",
    flat,
    { _id: 0, d: { twice: { $multiply: ["$b", 2] } } },
    { d: { twice: 4 } },
  ),
  projected("a literal", flat, { _id: 0, one: { $literal: 1 } }, { one: 1 }),
];

const refusals: Case[] = [
  refused("naming and leaving out at once", { a: 1, b: 0 }, 31_254),
  refused("leaving out and naming at once", { a: 0, b: 1 }, 31_253),
  refused("a path and one inside it", { a: 1, "a.b": 1 }, [31_249, 31_250]),
  refused("an operator that there is not", { a: { $nonsense: 1 } }, [168, 31_325]),
  refused("a path with an empty part", { "a..b": 1 }, [15_998, 40_353]),
];

describe("dialect: projections", () => {
  const open = useDatabase();
  describe("fields", () => defineCases(open, fields));
  describe("arrays", () => defineCases(open, arrays));
  describe("expressions", () => defineCases(open, computed));
  describe("refusals", () => defineCases(open, refusals));
});
