import { expect } from "chai";
import {
  type Collection,
  type Db,
  Decimal128,
  type Document,
  Long,
  MaxKey,
  MongoServerError,
  Timestamp,
} from "mongodb";
import { skipTest } from "../support/skip-test.ts";
import { freshCollection, ofId, useDatabase } from "./support.ts";

type Refusal = [what: string, code: number, run: (collection: Collection<Document>, db: Db) => Promise<unknown>];

const aggregate =
  (...stages: Document[]) =>
  (collection: Collection<Document>) =>
    collection.aggregate(stages).toArray();
const find = (filter: Document) => (collection: Collection<Document>) => collection.find(filter).toArray();
const update = (change: Document | Document[]) => (collection: Collection<Document>) =>
  collection.updateOne(ofId(1), change);
const search = (operand: Document) => aggregate({ $search: { index: "words", ...operand } });
const command = (given: (name: string) => Document) => (collection: Collection<Document>, db: Db) =>
  db.command(given(collection.collectionName));

const searchIndex =
  (definition: Document, type = "search") =>
  (collection: Collection<Document>) =>
    collection.createSearchIndex({ name: "other", type, definition });
const text = { text: { query: "a", path: "text" } };
const vector = { type: "vector", path: "a", numDimensions: 2, similarity: "cosine" };

const lookup = { $lookup: { from: "a", localField: "a", foreignField: "b", as: "c" } };

const refusals: Refusal[] = [
  ["the command distinct", 59, (collection) => collection.distinct("a")],
  ["the command listCollections", 59, (_, db) => db.listCollections().toArray()],
  ["the command explain", 59, (collection) => collection.find({}).explain()],
  ["the command collMod", 59, command((collMod) => ({ collMod }))],
  ["the option hint of find", 40_415, (collection) => collection.find({}).hint("_id_").toArray()],
  ["the option skip of find", 40_415, (collection) => collection.find({}).skip(1).toArray()],
  ["the option collation of find", 40_415, (collection) => collection.find({}).collation({ locale: "de" }).toArray()],
  ["the option sort of findAndModify", 40_415, (c) => c.findOneAndUpdate({}, { $set: { a: 1 } }, { sort: { a: 1 } })],
  ["the option remove of findAndModify", 238, (collection) => collection.findOneAndDelete({})],
  [
    "the option arrayFilters of updates",
    40_415,
    (c) => c.updateOne({}, { $set: { "a.$[e]": 1 } }, { arrayFilters: [{ e: 1 }] }),
  ],
  ["the option hint of deletes", 40_415, (collection) => collection.deleteOne({}, { hint: "_id_" })],
  ["$sort behind $lookup or $unionWith", 40_324, aggregate(lookup, { $sort: { a: 1 } })],
  ["$unwind of what the $lookup before it has not added", 238, aggregate(lookup, { $unwind: "$a" })],
  [
    "the option includeArrayIndex of $unwind",
    40_415,
    aggregate(lookup, { $unwind: { path: "$c", includeArrayIndex: "n" } }),
  ],
  ["a path in $lookup", 238, aggregate({ $lookup: { ...lookup.$lookup, localField: "a.b" } })],
  ["$lookup by a, which is no string", 238, aggregate(lookup)],
  ["$match behind $lookup or $unionWith", 40_324, aggregate({ $unionWith: { coll: "a" } }, { $match: { a: 1 } })],
  ["$unwind", 40_324, aggregate({ $unwind: "$a" })],
  ["$avg", 15_952, aggregate({ $group: { _id: null, a: { $avg: "$a" } } })],
  ["$multiply", 168, aggregate({ $group: { _id: { $multiply: ["$a", 2] } } })],
  ["$$ROOT in an expression", 238, aggregate({ $group: { _id: "$$ROOT" } })],
  ["$a.b in an expression", 238, aggregate({ $group: { _id: "$a.b" } })],
  ["an array of expressions", 238, aggregate({ $group: { _id: ["$item"] } })],
  ["a pipeline as an update", 238, update([{ $set: { b: 1 } }])],
  ["a computed field in a projection", 238, aggregate({ $project: { b: "$a" } })],
  ["a projection that leaves fields out", 238, (c) => c.find({}, { projection: { a: 0 } }).toArray()],
  ["$slice in a projection", 238, (collection) => collection.find({}, { projection: { a: { $slice: 1 } } }).toArray()],
  ["$mul", 9, update({ $mul: { a: 2 } })],
  ["$sort of $push", 2, update({ $push: { a: { $each: [2], $sort: 1 } } } as Document)],
  ["a $slice of $push that keeps the first", 2, update({ $push: { a: { $each: [2], $slice: 1 } } } as Document)],
  ["an update inside an array", 2, update({ $set: { "a.0": 2 } })],
  ["an upsert by a nested field", 238, (c) => c.updateOne({ "b.c": 1 }, { $set: { d: 1 } }, { upsert: true })],
  ["the position $ in an update", 2, update({ $set: { "a.$": 1 } })],
  ["$elemMatch on values that are no documents", 2, find({ a: { $elemMatch: { $gt: 0 } } })],
  ["$size", 2, find({ a: { $size: 1 } })],
  ["$regex", 2, find({ a: { $regex: "a" } })],
  ["$nin", 2, find({ a: { $nin: [1] } })],
  ["$nor", 2, find({ $nor: [{ a: 1 }] })],
  ["$expr", 2, find({ $expr: { $gt: ["$a", 1] } })],
  ["values of type BSONRegExp", 238, find({ a: /a/ })],
  ["values of type Decimal128", 238, (collection) => collection.insertOne({ a: [Decimal128.fromString("1")] })],
  ["values of type Long", 238, (collection) => collection.insertOne({ a: Long.MAX_VALUE })],
  ["values of type Timestamp", 238, update({ $set: { a: new Timestamp(1n) } })],
  ["values of type MaxKey", 238, find({ a: { $lt: new MaxKey() } })],
  ["a sort by a place in an array", 238, (collection) => collection.find({}).sort({ "a.0": 1 }).toArray()],
  ["an index of a place in an array", 238, (collection) => collection.createIndex({ "a.0": 1 })],
  ["an upsert by $or", 238, (c) => c.updateOne({ $or: [{ b: 1 }] }, { $set: { d: 1 } }, { upsert: true })],
  ["an index of two paths below one field", 238, (collection) => collection.createIndex({ "a.b": 1, "a.c": 1 })],
  [
    "an index on documents other than those with a field or a value",
    238,
    (c) => c.createIndex({ a: 1 }, { partialFilterExpression: { a: { $gt: 1 } } }),
  ],
  ["the option maxTimeMS of find", 40_415, (collection) => collection.find({}).maxTimeMS(1_000).toArray()],
  ["an index of type text", 238, (collection) => collection.createIndex({ a: "text" })],
  ["the option hidden of an index", 197, (collection) => collection.createIndex({ a: 1 }, { hidden: true })],
  ["the option phrase of $search", 40_415, search({ phrase: { query: "a", path: "text" } })],
  ["the option should of $search", 40_415, search({ compound: { should: [{ text: { query: "a", path: "text" } }] } })],
  ["a $search without an index", 238, search({ index: undefined })],
  ["several texts in compound.must of $search", 238, search({ compound: { must: [text, text] } })],
  ["the option synonyms of a search index", 40_415, searchIndex({ mappings: {}, synonyms: [] })],
  ["a vector index of nested fields", 238, searchIndex({ fields: [{ ...vector, path: "a.b" }] }, "vectorSearch")],
  [
    "a vector index of several vectors",
    238,
    searchIndex({ fields: [vector, { ...vector, path: "b" }] }, "vectorSearch"),
  ],
  [
    "the option fuzzy of text of $search",
    40_415,
    search({ compound: { must: { text: { query: "a", path: "text", fuzzy: {} } } } }),
  ],
];

describe("dialect: what the embedded store leaves to MongoDB", () => {
  const open = useDatabase();
  before("ask which server this is", async function () {
    const { modules } = await open().db.command({ buildInfo: 1 });
    if (!Array.isArray(modules) || !modules.includes("switchyard-embedded")) skipTest(this, "MongoDB offers all of it");
  });

  for (const [what, code, run] of refusals) {
    it(`refuses ${what} by its name`, async () => {
      const { db } = open();
      const collection = await freshCollection(open(), [{ _id: 1, a: [1] }]);
      const mappings = { dynamic: false, fields: { text: { type: "string" } } };
      await collection.createSearchIndex({ name: "words", definition: { mappings } });
      const error = await run(collection, db).catch((refusal: unknown) => refusal);
      if (!(error instanceof MongoServerError)) throw new Error(`expected a refusal, got ${String(error)}`);
      expect(error.message).to.equal(`the embedded store does not offer ${what}: set MONGODB_URL`);
      expect(error.code).to.equal(code);
      expect(await collection.findOne(ofId(1))).to.deep.equal({ _id: 1, a: [1] });
    });
  }
});
