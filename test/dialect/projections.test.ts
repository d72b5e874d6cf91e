import type { Document } from "mongodb";
import { type Case, defineCases, useDatabase } from "./support.ts";

/** This projection of the documents that the filter finds gives these. */
function projected(title: string, document: Document, projection: Document, result: Document): Case {
  return {
    title,
    given: [{ _id: 1, ...document }],
    when: (collection) => collection.findOne({}, { projection }),
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
  projected("the _id alone", flat, { _id: 1 }, { _id: 1 }),
  projected("an empty projection keeps all", flat, {}, { _id: 1, ...flat }),
  projected("a nested field named", nested, { "a.y": 1 }, { _id: 1, a: { y: 2 } }),
  projected("a field of an array's documents named", nested, { "b.x": 1 }, { _id: 1, b: [{ x: 1 }, { x: 3 }] }),
  projected("a path into a scalar gives nothing", flat, { "a.x": 1 }, { _id: 1 }),
];

const refusals: Case[] = [
  refused("a path and one inside it", { a: 1, "a.b": 1 }, [31_249, 31_250]),
  refused("a path with an empty part", { "a..b": 1 }, [15_998, 40_353]),
];

describe("dialect: projections", () => {
  const open = useDatabase();
  describe("fields", () => defineCases(open, fields));
  describe("refusals", () => defineCases(open, refusals));
});
