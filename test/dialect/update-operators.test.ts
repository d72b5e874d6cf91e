import { Decimal128, type Document, Long } from "mongodb";
import { type Case, defineCases, refusedUpdate, update, useDatabase } from "./support.ts";

/** The type that a field has after an update, beside its value. */
function typed(title: string, before: Document, change: Document, type: string, value: unknown): Case {
  return {
    title,
    given: [{ _id: 1, ...before }],
    when: async (collection) => {
      await collection.updateOne({}, change);
      const [found] = await collection.aggregate([{ $project: { _id: 0, a: 1, type: { $type: "$a" } } }]).toArray();
      return found;
    },
    gives: { a: value, type },
  };
}

const fields: Case[] = [
  update("$set changes a field in its place", { a: 1, b: 2 }, { $set: { a: 9 } }, { a: 9, b: 2 }),
  update(
    "$set adds new fields in the order of their names",
    { z: 0 },
    { $set: { c: 3, a: 1, b: 2 } },
    { z: 0, a: 1, b: 2, c: 3 },
  ),
  update("$set makes the documents on the way", {}, { $set: { "a.b.c": 1 } }, { a: { b: { c: 1 } } }),
  update(
    "$set of an element beyond the end fills with null",
    { a: [1] },
    { $set: { "a.3": 4 } },
    { a: [1, null, null, 4] },
  ),
  update("$set of an element changes only it", { a: [1, 2, 3] }, { $set: { "a.1": 9 } }, { a: [1, 9, 3] }),
  update(
    "$set into a document of an array goes by position",
    { a: [{ b: 1 }, { b: 2 }] },
    { $set: { "a.1.b": 9 } },
    { a: [{ b: 1 }, { b: 9 }] },
  ),
  update(
    "$set stores a document with its fields in the order given",
    {},
    { $set: { a: { y: 1, x: 2 } } },
    { a: { y: 1, x: 2 } },
  ),
  update(
    "$unset takes fields away, missing ones too",
    { a: 1, b: { c: 1, d: 2 } },
    { $unset: { a: "", "b.c": "", gone: "" } },
    { b: { d: 2 } },
  ),
  update("$unset of an array's element leaves null", { a: [1, 2, 3] }, { $unset: { "a.1": "" } }, { a: [1, null, 3] }),
  update("$unset through a scalar does nothing", { a: 1 }, { $unset: { "a.b": "" } }, { a: 1 }),
  update("$rename moves a value", { a: 1, b: 2 }, { $rename: { a: "c.d" } }, { b: 2, c: { d: 1 } }),
  update("$rename of a missing field does nothing", { a: 1 }, { $rename: { gone: "b" } }, { a: 1 }),
  update("$rename replaces the field that has the new name", { a: 1, b: 2 }, { $rename: { a: "b" } }, { b: 1 }),
  update(
    "several operators work at once",
    { a: 1, b: 2, c: [1] },
    { $inc: { a: 1 }, $unset: { b: "" }, $push: { c: 2 } } as never,
    { a: 2, c: [1, 2] },
  ),
  update(
    "$setOnInsert does nothing on an update",
    { a: 1 },
    { $set: { b: 1 }, $setOnInsert: { c: 1 } },
    { a: 1, b: 1 },
  ),
];

const arithmetic: Case[] = [
  update("$inc adds, and makes a missing field", { a: 1 }, { $inc: { a: 2, "b.c": -3 } }, { a: 3, b: { c: -3 } }),
  update("$mul multiplies, and makes a missing field zero", { a: 3 }, { $mul: { a: 2.5, b: 4 } }, { a: 7.5, b: 0 }),
  update("$min keeps the smaller", { a: 5, b: 5 }, { $min: { a: 3, b: 9, c: 1 } }, { a: 3, b: 5, c: 1 }),
  update("$max keeps the larger", { a: 5, b: 5 }, { $max: { a: 3, b: 9, c: 1 } }, { a: 5, b: 9, c: 1 }),
  update("$max compares across types: a string is more than a number", { a: 5 }, { $max: { a: "x" } }, { a: "x" }),
  update("$min compares dates", { a: new Date(2000) }, { $min: { a: new Date(1000) } }, { a: new Date(1000) }),
  typed("int + int stays int", { a: 1 }, { $inc: { a: 1 } }, "int", 2),
  typed("int + int beyond 32 bits becomes long", { a: 2_147_483_647 }, { $inc: { a: 1 } }, "long", 2_147_483_648),
  typed("int + long is long", { a: 1 }, { $inc: { a: Long.fromNumber(1) } }, "long", 2),
  typed("long + double is double", { a: Long.fromNumber(1) }, { $inc: { a: 0.5 } }, "double", 1.5),
  typed(
    "long + long is exact beyond 2^53",
    { a: Long.fromString("9007199254740992") },
    { $inc: { a: Long.fromNumber(1) } },
    "long",
    Long.fromString("9007199254740993"),
  ),
  typed(
    "int + decimal is decimal, and exact",
    { a: 1 },
    { $inc: { a: Decimal128.fromString("0.1") } },
    "decimal",
    Decimal128.fromString("1.1"),
  ),
  typed("int × int beyond 32 bits becomes long", { a: 2_147_483_647 }, { $mul: { a: 2 } }, "long", 4_294_967_294),
  refusedUpdate("a 64-bit overflow is refused", { a: Long.MAX_VALUE }, { $inc: { a: 1 } }, 2),
  refusedUpdate("$inc by a string is refused", { a: 1 }, { $inc: { a: "1" } } as never, 14),
  refusedUpdate("$mul of a string is refused", { a: "x" }, { $mul: { a: 2 } }, 14),
  update(
    "$bit and, or, xor",
    { a: 13, b: 3, c: 1 },
    { $bit: { a: { and: 10 }, b: { or: 5 }, c: { xor: 5 } } } as never,
    { a: 8, b: 7, c: 4 },
  ),
  refusedUpdate("$bit of a double is refused", { a: 1.5 }, { $bit: { a: { and: 1 } } } as never, 2),
];

const dates: Case[] = [
  {
    title: "$currentDate sets the time of now",
    given: [{ _id: 1 }],
    when: async (collection) => {
      const before = Date.now();
      await collection.updateOne({}, { $currentDate: { a: true, b: { $type: "date" } } } as never);
      const { a, b }: Document = (await collection.findOne()) ?? {};
      // The server's clock may be another machine's: a minute is near enough to tell now from anything else.
      return [a, b].every((date) => date instanceof Date && Math.abs(date.getTime() - before) < 60_000);
    },
    gives: true,
  },
  {
    title: "$currentDate can set a timestamp",
    given: [{ _id: 1 }],
    when: async (collection) => {
      await collection.updateOne({}, { $currentDate: { a: { $type: "timestamp" } } } as never);
      return collection.countDocuments({ a: { $type: "timestamp" } });
    },
    gives: 1,
  },
];

const pipelines: Case[] = [
  update(
    "a pipeline computes from the document",
    { a: 2, b: { c: 3 } },
    [{ $set: { d: { $multiply: ["$a", "$b.c"] } } }],
    { a: 2, b: { c: 3 }, d: 6 },
  ),
  update(
    "the stages of a pipeline see what those before them did",
    { a: 1 },
    [{ $set: { b: { $add: ["$a", 1] } } }, { $set: { c: { $add: ["$b", 1] } } }],
    { a: 1, b: 2, c: 3 },
  ),
  update("$unset in a pipeline takes fields away", { a: 1, b: { c: 1, d: 2 } }, [{ $unset: ["a", "b.c"] }], {
    b: { d: 2 },
  }),
  update("$replaceWith in a pipeline keeps the _id", { a: 1, b: { x: 5 } }, [{ $replaceWith: "$b" }], { x: 5 }),
  update("$project in a pipeline keeps the _id", { a: 1, b: 2 }, [{ $project: { b: 1 } }], { b: 2 }),
  update("$$REMOVE takes a field away", { a: 1, b: 2 }, [{ $set: { a: "$$REMOVE" } }], { b: 2 }),
  update(
    "a condition in a pipeline decides by the old value",
    { n: 5, top: 3 },
    [{ $set: { top: { $max: ["$top", "$n"] }, big: { $cond: [{ $gt: ["$n", 4] }, "yes", "no"] } } }],
    { n: 5, top: 5, big: "yes" },
  ),
  refusedUpdate("a stage that is no update is refused", { a: 1 }, [{ $match: { a: 1 } }], [72, 40_324]),
  refusedUpdate("a pipeline that changes the _id is refused", { a: 1 }, [{ $set: { _id: 2 } }], 66),
];

const refusals: Case[] = [
  refusedUpdate("two operators on one field conflict", {}, { $set: { a: 1 }, $inc: { a: 1 } }, 40),
  refusedUpdate("a field and one inside it conflict", {}, { $set: { a: {}, "a.b": 1 } }, 40),
  refusedUpdate(
    "a $rename conflicts with a change of its target",
    { a: 1 },
    { $rename: { a: "b" }, $set: { b: 1 } },
    40,
  ),
  refusedUpdate("a change of the _id is refused", { a: 1 }, { $set: { _id: 2 } }, 66),
  refusedUpdate("taking the _id away is refused", { a: 1 }, { $unset: { _id: "" } }, 66),
  refusedUpdate("an unknown operator is refused", { a: 1 }, { $frobnicate: { a: 1 } } as never, 9),
  refusedUpdate("an operator without fields to work on is refused", { a: 1 }, { $set: 5 } as never, 9),
  refusedUpdate("a field named in an array that is no position is refused", { a: [1] }, { $set: { "a.b": 1 } }, 28),
  refusedUpdate("an empty part of a path is refused", {}, { $set: { "a..b": 1 } }, 56),
  refusedUpdate("$rename to itself is refused", { a: 1 }, { $rename: { a: "a" } }, 2),
  refusedUpdate("$rename to something that is no name is refused", { a: 1 }, { $rename: { a: 5 } } as never, 2),
  refusedUpdate("$rename out of an array is refused", { a: [{ b: 1 }] }, { $rename: { "a.0.b": "c" } }, 2),
  refusedUpdate(
    "$currentDate of an unknown type is refused",
    {},
    { $currentDate: { a: { $type: "year" } } } as never,
    2,
  ),
];

describe("dialect: update operators", () => {
  const open = useDatabase();
  describe("fields", () => defineCases(open, fields));
  describe("arithmetic and types", () => defineCases(open, arithmetic));
  describe("dates", () => defineCases(open, dates));
  describe("pipelines", () => defineCases(open, pipelines));
  describe("refusals", () => defineCases(open, refusals));
});
