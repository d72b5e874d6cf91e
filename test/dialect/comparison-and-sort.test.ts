import { Binary, type Document, Double, Long, ObjectId } from "mongodb";
import { type Case, defineCases, useDatabase } from "./support.ts";

/** Sorting these gives these _ids. */
function sorted(
  title: string,
  given: readonly Document[],
  order: Record<string, 1 | -1>,
  ids: readonly unknown[],
): Case {
  return {
    title,
    given,
    when: async (collection) => (await collection.find().sort(order).toArray()).map(({ _id }) => _id),
    gives: ids,
  };
}

/** The values come in this order, going up and (turned round) going down. */
function ascending(title: string, values: readonly unknown[]): Case[] {
  const given = values.map((a, at) => ({ _id: at, a })).toReversed();
  const ids = values.map((_, at) => at);
  return [
    sorted(`${title}, upwards`, given, { a: 1 }, ids),
    sorted(`${title}, downwards`, given, { a: -1 }, ids.toReversed()),
  ];
}

const orders: Case[] = [
  ...ascending("the types in their order", [
    null,
    5,
    "text",
    { x: 1 },
    new Binary(Buffer.from([1])),
    new ObjectId("65a000000000000000000001"),
    false,
    true,
    new Date(0),
  ]),
  ...ascending("numbers of all types", [
    Number.NaN,
    Number.NEGATIVE_INFINITY,
    -1.5,
    new Double(0),
    0.1,
    1,
    Long.fromNumber(2),
    2.5,
    1e300,
  ]),
  ...ascending("strings by code point", ["", "A", "B", "a", "aa", "b", "é", "￿", "😀"]),
  ...ascending("documents field by field: type, name, value", [
    {},
    { a: 1 },
    { a: 1, b: 1 },
    { a: 2 },
    { b: 1 },
    { a: "x" },
  ]),
  ...ascending("binaries by length, subtype, bytes", [
    new Binary(Buffer.from([9])),
    new Binary(Buffer.from([1, 1])),
    new Binary(Buffer.from([1, 2])),
    new Binary(Buffer.from([1, 1]), 128),
  ]),
  ...ascending("dates, also before 1970", [new Date(-1), new Date(0), new Date(1)]),
  ...ascending("ObjectIds by their bytes", [
    new ObjectId("650000000000000000000001"),
    new ObjectId("650000000000000000000002"),
    new ObjectId("660000000000000000000000"),
  ]),
];

const sorts: Case[] = [
  sorted(
    "two keys",
    [
      { _id: 1, a: 1, b: 1 },
      { _id: 2, a: 1, b: 2 },
      { _id: 3, a: 0, b: 1 },
    ],
    { a: 1, b: -1 },
    [3, 2, 1],
  ),
  sorted(
    "a nested field",
    [
      { _id: 1, a: { b: 2 } },
      { _id: 2, a: { b: 1 } },
    ],
    { "a.b": 1 },
    [2, 1],
  ),
  sorted("missing counts as null", [{ _id: 1, a: 1 }, { _id: 2 }, { _id: 3, a: null }], { a: 1, _id: 1 }, [2, 3, 1]),
  sorted(
    "an array counts by its smallest going up",
    [
      { _id: 1, a: [5, 1] },
      { _id: 2, a: 2 },
      { _id: 3, a: [3, 4] },
    ],
    { a: 1 },
    [1, 2, 3],
  ),
  sorted(
    "an array counts by its largest going down",
    [
      { _id: 1, a: [5, 1] },
      { _id: 2, a: 2 },
      { _id: 3, a: [3, 4] },
    ],
    { a: -1 },
    [1, 3, 2],
  ),
  sorted(
    "an empty array comes before null",
    [
      { _id: 1, a: null },
      { _id: 2, a: [] },
    ],
    { a: 1 },
    [2, 1],
  ),
  sorted(
    "a field of the documents of an array",
    [
      { _id: 1, a: [{ b: 4 }, { b: 9 }] },
      { _id: 2, a: [{ b: 5 }] },
    ],
    { "a.b": 1 },
    [1, 2],
  ),
  {
    title: "a sort direction that is neither 1 nor -1 is refused",
    given: [{ _id: 1 }],
    when: (collection, db) => db.command({ find: collection.collectionName, sort: { a: 2 } }),
    fails: [2, 15_975],
  },
];

describe("dialect: comparison and sort", () => {
  const open = useDatabase();
  describe("order of values", () => defineCases(open, orders));
  describe("sorts", () => defineCases(open, sorts));
});
