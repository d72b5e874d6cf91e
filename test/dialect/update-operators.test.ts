import { Long } from "mongodb";
import { type Case, defineCases, rejectedUpdate, update, useDatabase } from "./support.ts";

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
  update("$unset through a scalar does nothing", { a: 1 }, { $unset: { "a.b": "" } }, { a: 1 }),
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

const pushes: Case[] = [
  update("$push appends, and makes a missing array", { a: [1] }, { $push: { a: 2, b: 1 } } as never, {
    a: [1, 2],
    b: [1],
  }),
  update("$push of an array appends it as one element", { a: [1] }, { $push: { a: [2, 3] } } as never, {
    a: [1, [2, 3]],
  }),
  update(
    "$push of $each appends its items, and $slice keeps the last of all",
    { a: [1, 2], b: [1], c: [1, 2, 3] },
    {
      $push: { a: { $each: [3, 4], $slice: -3 }, b: { $each: [{ x: "$b" }] }, c: { $each: [], $slice: -1 } },
    } as never,
    { a: [2, 3, 4], b: [1, { x: "$b" }], c: [3] },
  ),
  update("$push of $each makes a missing array", {}, { $push: { a: { $each: [1, 2], $slice: -5 } } } as never, {
    a: [1, 2],
  }),
  rejectedUpdate(
    "$push of an $each that is no array is refused",
    { a: [] },
    { $push: { a: { $each: 1 } } } as never,
    2,
  ),
  rejectedUpdate("$push to a scalar is refused", { a: 1 }, { $push: { a: 2 } } as never, 2),
];

const elements: Case[] = [
  update(
    "$[] reaches into every document of an array",
    { a: [{ b: 1, c: 1 }, { c: 2 }], d: 1 },
    { $unset: { "a.$[].b": "" }, $set: { d: 2 } },
    { a: [{ c: 1 }, { c: 2 }], d: 2 },
  ),
  update("$[] changes nothing in an empty array", { a: [] }, { $unset: { "a.$[].b": "" } }, { a: [] }),
  update("$[] sets a field of each", { a: [{ b: 1 }, {}] }, { $set: { "a.$[].b": 2 } }, { a: [{ b: 2 }, { b: 2 }] }),
  update("$unset passes over what is no document", { a: [{ b: 1 }, 5] }, { $unset: { "a.$[].b": "" } }, { a: [{}, 5] }),
  rejectedUpdate("$set into a scalar of the array is refused", { a: [{ b: 1 }, 5] }, { $set: { "a.$[].b": 2 } }, 28),
  rejectedUpdate("$[] on a scalar is refused", { a: 1 }, { $set: { "a.$[].b": 2 } }, 2),
  rejectedUpdate("$[] on a missing array is refused", {}, { $set: { "a.$[].b": 2 } }, 2),
];

const arithmetic: Case[] = [
  update("$inc adds, and makes a missing field", { a: 1 }, { $inc: { a: 2, "b.c": -3 } }, { a: 3, b: { c: -3 } }),
  update("$min keeps the smaller", { a: 5, b: 5 }, { $min: { a: 3, b: 9, c: 1 } }, { a: 3, b: 5, c: 1 }),
  update("$min compares dates", { a: new Date(2000) }, { $min: { a: new Date(1000) } }, { a: new Date(1000) }),
  update("$inc goes beyond 32 bits", { a: 2_147_483_647 }, { $inc: { a: 1 } }, { a: 2_147_483_648 }),
  update("$inc adds a double to a long", { a: Long.fromNumber(1) }, { $inc: { a: 0.5 } }, { a: 1.5 }),
  rejectedUpdate("$inc by a string is refused", { a: 1 }, { $inc: { a: "1" } } as never, 14),
];

const refusals: Case[] = [
  rejectedUpdate("two operators on one field conflict", {}, { $set: { a: 1 }, $inc: { a: 1 } }, 40),
  rejectedUpdate("a field and one inside it conflict", {}, { $set: { a: {}, "a.b": 1 } }, 40),
  rejectedUpdate("a change of the _id is refused", { a: 1 }, { $set: { _id: 2 } }, 66),
  rejectedUpdate("taking the _id away is refused", { a: 1 }, { $unset: { _id: "" } }, 66),
  rejectedUpdate("an unknown operator is refused", { a: 1 }, { $frobnicate: { a: 1 } } as never, 9),
  rejectedUpdate("an operator without fields to work on is refused", { a: 1 }, { $set: 5 } as never, 9),
  rejectedUpdate("an empty part of a path is refused", {}, { $set: { "a..b": 1 } }, 56),
];

describe("dialect: update operators", () => {
  const open = useDatabase();
  describe("fields", () => defineCases(open, fields));
  describe("arithmetic", () => defineCases(open, arithmetic));
  describe("$[]", () => defineCases(open, elements));
  describe("$push", () => defineCases(open, pushes));
  describe("refusals", () => defineCases(open, refusals));
});
