import { expect } from "chai";
import fc from "fast-check";
import { BSON, type Collection, type Document, Long, ObjectId } from "mongodb";
import { withFreshServer } from "./support.ts";

const { EJSON } = BSON;
const objectIds = ["65a000000000000000000001", "65a000000000000000000002"].map((hex) => new ObjectId(hex));

/** Values of few kinds and small ranges, so that conditions and documents often meet. */
const scalar = fc.oneof(
  fc.integer({ min: -2, max: 3 }),
  fc.constantFrom(0.5, -1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53),
  fc.constantFrom("", "a", "ab", "b", "a\0b", "é", "z"),
  fc.constantFrom(true, false, null),
  fc.constantFrom(new Date(0), new Date(1_000), new Date(-1_000)),
  fc.constantFrom(Long.fromNumber(-1), Long.fromNumber(1)),
  fc.constantFrom(...objectIds),
);
const value = fc.oneof(
  { weight: 6, arbitrary: scalar },
  { weight: 1, arbitrary: fc.array(scalar, { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.record({ b: scalar, c: scalar }, { requiredKeys: [] }) },
  { weight: 1, arbitrary: fc.array(fc.record({ b: scalar, c: scalar }, { requiredKeys: [] }), { maxLength: 3 }) },
);
const document = fc.record({ a: value, b: value, c: scalar }, { requiredKeys: [] });

const condition = fc.oneof(
  scalar,
  value,
  fc.record({ $in: fc.array(scalar, { maxLength: 3 }) }),
  fc.record({ $gt: scalar }),
  fc.record({ $gte: scalar, $lt: scalar }),
  fc.record({ $lte: scalar }),
  fc.record({ $gt: scalar, $lte: scalar }),
  fc.record({ $exists: fc.boolean() }),
  fc.record({ $ne: scalar }),
);
const fields = fc.dictionary(fc.constantFrom("a", "b", "c", "a.b", "a.c"), condition, { minKeys: 1, maxKeys: 3 });
const filter = fc.oneof(
  { weight: 5, arbitrary: fields },
  { weight: 1, arbitrary: fc.record({ $or: fc.array(fields, { minLength: 1, maxLength: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ $and: fc.array(fields, { minLength: 1, maxLength: 2 }) }) },
);
const sort = fc.constantFrom<Record<string, 1 | -1>>(
  { _id: 1 },
  { c: 1, _id: 1 },
  { c: -1, _id: 1 },
  { b: 1, c: -1, _id: 1 },
);

const shown = (found: Document[]) => EJSON.stringify(found.map(({ _id }) => _id));

type Thing = Document & { _id: number };

type Both = { things: Collection<Thing>; plain: Collection<Thing> };

/** The same query by whatever index the server chooses, and where there are none. */
async function expectSame({ things, plain }: Both, query: Document, order: Record<string, 1 | -1>): Promise<void> {
  const chosen = await things.find(query).sort(order).toArray();
  const scanned = await plain.find(query).sort(order).toArray();
  expect(shown(chosen), EJSON.stringify({ query, order })).to.equal(shown(scanned));
  const counted = await things.countDocuments(query);
  expect(counted, EJSON.stringify({ query })).to.equal(scanned.length);
}

describe("embedded store: an index never changes an answer", () => {
  it("gives the same documents in the same order with indexes as without, after inserts, updates and deletes", function () {
    this.timeout(60_000);
    return withFreshServer(async (db) => {
      const things = db.collection<Thing>("things");
      await things.createIndexes([
        { key: { a: 1 } },
        { key: { b: 1, c: -1 } },
        { key: { c: 1, a: 1 } },
        { key: { "a.c": 1, c: -1 } },
        { key: { "a.b": -1 }, sparse: true, name: "sparse" },
        { key: { c: -1 }, partialFilterExpression: { c: { $exists: true } }, name: "partial" },
      ]);
      const given = fc.sample(document, { numRuns: 400, seed: 20 });
      // Documents with arrays at both paths of one index are refused; the others are stored.
      const inserts = given.map((entry, n) => ({ insertOne: { document: { _id: n, ...entry } } }));
      await things
        .bulkWrite(inserts, { ordered: false })
        .catch((error: unknown) => expect(error).to.include({ code: 171 }));
      const changes = fc.sample(fc.record({ a: value, c: scalar }), { numRuns: 150, seed: 21 });
      for (const [n, change] of changes.entries()) {
        await things
          .updateOne({ _id: n * 2 }, { $set: change })
          .catch((error: unknown) => expect(error).to.include({ code: 171 }));
      }
      await things.deleteMany({ _id: { $gte: 350 } });
      const plain = db.collection<Thing>("plain");
      await plain.insertMany(await things.find({}).toArray());
      const queries = fc.sample(fc.tuple(filter, sort), { numRuns: 500, seed: 22 });
      for (const [query, order] of queries) await expectSame({ things, plain }, query, order);
    });
  });

  it("finds by lists of _id what a list of a field without an index finds, in either order", function () {
    this.timeout(60_000);
    return withFreshServer(async (db) => {
      const things = db.collection<{ _id: unknown; k: unknown; n: number }>("things");
      // Equal ones, such as 1 and Long 1, are refused; the others are stored.
      const known = fc.sample(scalar, { numRuns: 200, seed: 23 }).filter((id) => id !== null);
      const ids = [...known, { b: 1 }, { b: 1, c: 2 }, "abc", "abcd", 7, 71];
      const inserts = ids.map((id, n) => ({ insertOne: { document: { _id: id, k: id, n } } }));
      await things
        .bulkWrite(inserts as never, { ordered: false })
        .catch((error: unknown) => expect(error).to.include({ code: 11000 }));
      const lists = fc.sample(fc.array(fc.constantFrom(...ids, "no such"), { maxLength: 12 }), {
        numRuns: 200,
        seed: 24,
      });
      for (const list of lists) {
        for (const order of [1, -1] as const) {
          const by = (name: "_id" | "k", limit: number, more: object = {}) =>
            things
              .find({ [name]: { $in: list }, ...more })
              .sort({ _id: order })
              .limit(limit)
              .toArray();
          expect(shown(await by("_id", 0))).to.equal(shown(await by("k", 0)));
          expect(shown(await by("_id", 2, { n: { $ne: 3 } }))).to.equal(shown(await by("k", 2, { n: { $ne: 3 } })));
        }
      }
    });
  });
});
