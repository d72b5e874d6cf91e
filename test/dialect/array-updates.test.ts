import { type Case, defineCases, refusedUpdate, update, useDatabase } from "./support.ts";

const pushes: Case[] = [
  update("$push appends, and makes a missing array", { a: [1] }, { $push: { a: 2, b: 1 } } as never, {
    a: [1, 2],
    b: [1],
  }),
  update("$push of an array appends it as one element", { a: [1] }, { $push: { a: [2, 3] } } as never, {
    a: [1, [2, 3]],
  }),
  update("$each appends each", { a: [1] }, { $push: { a: { $each: [2, 3] } } } as never, { a: [1, 2, 3] }),
  update("$position inserts", { a: [1, 4] }, { $push: { a: { $each: [2, 3], $position: 1 } } } as never, {
    a: [1, 2, 3, 4],
  }),
  update(
    "a negative $position counts from the end",
    { a: [1, 2, 3] },
    { $push: { a: { $each: [9], $position: -1 } } } as never,
    { a: [1, 2, 9, 3] },
  ),
  update("$slice keeps the first", { a: [1, 2] }, { $push: { a: { $each: [3], $slice: 2 } } } as never, { a: [1, 2] }),
  update("a negative $slice keeps the last", { a: [1, 2] }, { $push: { a: { $each: [3], $slice: -2 } } } as never, {
    a: [2, 3],
  }),
  update("$slice 0 empties", { a: [1, 2] }, { $push: { a: { $each: [3], $slice: 0 } } } as never, { a: [] }),
  update("$sort orders scalars downwards", { a: [1, 3] }, { $push: { a: { $each: [2], $sort: -1 } } } as never, {
    a: [3, 2, 1],
  }),
  update(
    "$sort, then $slice: the best three",
    { a: [{ s: 5 }, { s: 8 }] },
    { $push: { a: { $each: [{ s: 7 }, { s: 1 }], $sort: { s: -1 }, $slice: 3 } } } as never,
    { a: [{ s: 8 }, { s: 7 }, { s: 5 }] },
  ),
  update("an empty $each with $slice trims", { a: [1, 2, 3] }, { $push: { a: { $each: [], $slice: 1 } } } as never, {
    a: [1],
  }),
  refusedUpdate(
    "$each of something that is no array is refused",
    { a: [] },
    { $push: { a: { $each: 5 } } } as never,
    2,
  ),
  refusedUpdate(
    "an unknown clause of $push is refused",
    { a: [] },
    { $push: { a: { $each: [1], $foo: 1 } } } as never,
    2,
  ),
  refusedUpdate(
    "a $slice that is no number is refused",
    { a: [] },
    { $push: { a: { $each: [1], $slice: "x" } } } as never,
    2,
  ),
];

const sets: Case[] = [
  update("$addToSet adds what is not there", { a: [1, 2] }, { $addToSet: { a: 3, b: 1 } }, { a: [1, 2, 3], b: [1] }),
  update("$addToSet leaves what is there", { a: [1, 2] }, { $addToSet: { a: 2 } }, { a: [1, 2] }),
  update(
    "$addToSet compares documents with their order of fields",
    { a: [{ x: 1, y: 2 }] },
    {
      $addToSet: {
        a: {
          $each: [
            { x: 1, y: 2 },
            { y: 2, x: 1 },
          ],
        },
      },
    },
    {
      a: [
        { x: 1, y: 2 },
        { y: 2, x: 1 },
      ],
    },
  ),
  update("$addToSet of an array adds it as one element", { a: [1] }, { $addToSet: { a: [1] } }, { a: [1, [1]] }),
  refusedUpdate("$addToSet on a scalar is refused", { a: 1 }, { $addToSet: { a: 2 } }, 2),
];

const removals: Case[] = [
  update("$pull takes every equal element", { a: [1, 2, 1, 3] }, { $pull: { a: 1 } } as never, { a: [2, 3] }),
  update("$pull with operators tests the elements", { a: [1, 5, 9] }, { $pull: { a: { $gte: 5 } } } as never, {
    a: [1],
  }),
  update("$pull with $in", { a: ["x", "y", "z"] }, { $pull: { a: { $in: ["x", "z"] } } } as never, { a: ["y"] }),
  update(
    "$pull with a document matches documents by these fields",
    { a: [{ x: 1, y: 1 }, { x: 2 }] },
    { $pull: { a: { x: 1 } } } as never,
    { a: [{ x: 2 }] },
  ),
  update("$pull with conditions on fields", { a: [{ s: 1 }, { s: 7 }] }, { $pull: { a: { s: { $gt: 5 } } } } as never, {
    a: [{ s: 1 }],
  }),
  update(
    "$pull with $or",
    { a: [{ x: 1 }, { y: 2 }, { z: 3 }] },
    { $pull: { a: { $or: [{ x: 1 }, { z: 3 }] } } } as never,
    { a: [{ y: 2 }] },
  ),
  update("$pull from a nested array", { a: { b: [1, 2] } }, { $pull: { "a.b": 1 } } as never, { a: { b: [2] } }),
  update("$pull from a missing array does nothing", { b: 1 }, { $pull: { a: 1 } } as never, { b: 1 }),
  refusedUpdate("$pull from a scalar is refused", { a: 1 }, { $pull: { a: 1 } } as never, 2),
  update("$pullAll takes each of the values", { a: [1, 2, 3, 2] }, { $pullAll: { a: [2, 3] } } as never, { a: [1] }),
  refusedUpdate("$pullAll wants an array", { a: [1] }, { $pullAll: { a: 1 } } as never, 2),
  update("$pop takes the last", { a: [1, 2, 3] }, { $pop: { a: 1 } }, { a: [1, 2] }),
  update("$pop -1 takes the first", { a: [1, 2, 3] }, { $pop: { a: -1 } }, { a: [2, 3] }),
  refusedUpdate("$pop by another number is refused", { a: [1] }, { $pop: { a: 2 } } as never, 9),
  refusedUpdate("$pop of a scalar is refused", { a: 1 }, { $pop: { a: 1 } }, 14),
];

const positions: Case[] = [
  update(
    "$ changes the matched scalar",
    { a: [1, 2, 3] },
    { $set: { "a.$": 9 } },
    { a: [1, 9, 3] },
    { filter: { a: 2 } },
  ),
  update(
    "$ with $inc in the matched document",
    {
      a: [
        { k: "x", n: 1 },
        { k: "y", n: 1 },
      ],
    },
    { $inc: { "a.$.n": 5 } },
    {
      a: [
        { k: "x", n: 1 },
        { k: "y", n: 6 },
      ],
    },
    { filter: { "a.k": "y" } },
  ),
  update(
    "$ follows the condition on its own array",
    { a: [1, 2, 3], b: [{ k: 1 }, { k: 2 }] },
    { $set: { "b.$.s": 1 } },
    { a: [1, 2, 3], b: [{ k: 1 }, { k: 2, s: 1 }] },
    { filter: { "b.k": 2 } },
  ),
  refusedUpdate("$ without a condition on an array is refused", { a: [1] }, { $set: { "a.$": 2 } }, 2),
  update("$[] changes every element", { a: [1, 2] }, { $inc: { "a.$[]": 10 } }, { a: [11, 12] }),
  update(
    "$[] reaches into every document",
    { a: [{ b: 1 }, { c: 2 }] },
    { $set: { "a.$[].b": 0 } },
    { a: [{ b: 0 }, { c: 2, b: 0 }] },
  ),
  update(
    "$[] twice reaches into arrays of arrays",
    { a: [{ b: [1, 2] }, { b: [3] }] },
    { $mul: { "a.$[].b.$[]": 2 } },
    { a: [{ b: [2, 4] }, { b: [6] }] },
  ),
  refusedUpdate("$[] on a scalar is refused", { a: 1 }, { $set: { "a.$[]": 2 } }, 2),
  refusedUpdate("$[] on a missing array is refused", {}, { $set: { "a.$[]": 2 } }, 2),
  update(
    "$[id] changes the elements that the filter finds",
    { a: [1, 5, 9] },
    { $set: { "a.$[e]": 0 } },
    { a: [1, 0, 0] },
    { arrayFilters: [{ e: { $gte: 5 } }] },
  ),
  update(
    "$[id] filters documents by several fields",
    {
      a: [
        { x: 1, y: 1 },
        { x: 1, y: 2 },
      ],
    },
    { $set: { "a.$[e].z": 9 } },
    {
      a: [
        { x: 1, y: 1 },
        { x: 1, y: 2, z: 9 },
      ],
    },
    { arrayFilters: [{ "e.x": 1, "e.y": { $gt: 1 } }] },
  ),
  update(
    "two array filters reach into nested arrays",
    {
      a: [
        { k: 1, b: [1, 2, 3] },
        { k: 2, b: [1, 2, 3] },
      ],
    },
    { $set: { "a.$[x].b.$[y]": 0 } },
    {
      a: [
        { k: 1, b: [1, 2, 3] },
        { k: 2, b: [1, 0, 0] },
      ],
    },
    { arrayFilters: [{ "x.k": 2 }, { y: { $gte: 2 } }] },
  ),
  update(
    "$[id] with $push",
    {
      a: [
        { k: 1, t: [] },
        { k: 2, t: [] },
      ],
    },
    { $push: { "a.$[e].t": "new" } } as never,
    {
      a: [
        { k: 1, t: [] },
        { k: 2, t: ["new"] },
      ],
    },
    { arrayFilters: [{ "e.k": 2 }] },
  ),
  refusedUpdate("an array filter that is not there is refused", { a: [1] }, { $set: { "a.$[e]": 2 } }, 2),
  refusedUpdate("an array filter that is not used is refused", { a: [1] }, { $set: { b: 2 } }, 9, {
    arrayFilters: [{ e: 1 }],
  }),
  refusedUpdate("two array filters of one name are refused", { a: [1] }, { $set: { "a.$[e]": 2 } }, 9, {
    arrayFilters: [{ e: 1 }, { e: 2 }],
  }),
  refusedUpdate(
    "two paths that meet in one element conflict",
    { a: [{ x: 1 }] },
    { $set: { "a.$[e].x": 1, "a.$[f].x": 2 } },
    40,
    { arrayFilters: [{ "e.x": 1 }, { "f.x": 1 }] },
  ),
];

describe("dialect: array updates", () => {
  const open = useDatabase();
  describe("$push", () => defineCases(open, pushes));
  describe("$addToSet", () => defineCases(open, sets));
  describe("$pull, $pullAll, $pop", () => defineCases(open, removals));
  describe("positions and array filters", () => defineCases(open, positions));
});
