import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { Binary, type Collection, type Document } from "mongodb";
import { expectFailure, freshCollection, needsSearchIndexes, useDatabase } from "./support.ts";

const vectors: Record<string, number[]> = { east: [1, 0, 0], north: [0, 1, 0], northeast: [1, 1, 0], west: [-1, 0, 0] };
const given: Document[] = Object.entries(vectors).map(([name, vector], n) => ({
  _id: name,
  group: n % 2 === 0 ? "even" : "odd",
  n,
  text: `the ${name} wind is blowing over ${n} hills`,
  embedding: Binary.fromFloat32Array(new Float32Array(vector)),
}));
const query = (options: Document = {}) => ({
  index: "by_vector",
  path: "embedding",
  queryVector: [1, 0, 0],
  numCandidates: 10,
  limit: 4,
  ...options,
});
/** Longest wait until a server has built an index, in ms; Atlas builds them apart from the writes. */
const READY_TIMEOUT_MS = 60_000;

describe("dialect: search", function () {
  this.timeout(READY_TIMEOUT_MS + 20_000);
  const open = useDatabase();
  needsSearchIndexes(open);
  let collection: Collection<Document>;

  /** The collection is made at the first use: only where there are search indexes. */
  beforeEach(async () => {
    if (collection) return;
    const made = await freshCollection(open(), given);
    const fields = [
      { type: "filter", path: "group" },
      { type: "filter", path: "n" },
    ];
    const vectorField = { type: "vector", path: "embedding", numDimensions: 3, similarity: "cosine" };
    await made.createSearchIndexes([
      { name: "by_vector", type: "vectorSearch", definition: { fields: [vectorField, ...fields] } },
      {
        name: "by_text",
        type: "search",
        definition: {
          mappings: {
            dynamic: false,
            fields: { text: { type: "string", analyzer: "lucene.english" }, group: { type: "token" } },
          },
        },
      },
    ]);
    const deadline = Date.now() + READY_TIMEOUT_MS;
    while ((await made.listSearchIndexes().toArray()).some((index) => (index as Document).queryable !== true)) {
      if (Date.now() > deadline) throw new Error("the search indexes did not become ready");
      await delay(200);
    }
    collection = made;
  });

  const search = (options: Document = {}) =>
    collection
      .aggregate([{ $vectorSearch: query(options) }, { $project: { score: { $meta: "vectorSearchScore" } } }])
      .toArray();
  const idsOf = async (found: Promise<Document[]>) => (await found).map(({ _id }) => _id);

  it("finds the nearest first, and scores cosine as (1 + cosine) / 2", async () => {
    const found = await search();
    expect(found.map(({ _id }) => _id)).to.deep.equal(["east", "northeast", "north", "west"]);
    const wanted = [1, (1 + Math.SQRT1_2) / 2, 0.5, 0];
    for (const [at, { score }] of found.entries()) expect(score).to.be.closeTo(wanted[at] ?? Number.NaN, 1e-5);
  });

  it("applies filters on declared paths, with comparisons", async () => {
    expect(await idsOf(search({ filter: { group: "even" } }))).to.have.members(["east", "northeast"]);
    expect(await idsOf(search({ filter: { n: { $gte: 1, $lt: 3 } } }))).to.have.members(["north", "northeast"]);
    expect(await idsOf(search({ filter: { n: { $in: [0, 1] }, group: "odd" } }))).to.deep.equal(["north"]);
    expect(await idsOf(search({ filter: { group: { $ne: "even" } } }))).to.have.members(["north", "west"]);
  });

  it("limits", async () => {
    expect(await idsOf(search({ limit: 2 }))).to.deep.equal(["east", "northeast"]);
  });

  it("continues with other stages", async () => {
    const stages = [{ $vectorSearch: query() }, { $match: { group: "odd" } }, { $sort: { _id: 1 } }, { $limit: 1 }];
    expect(await idsOf(collection.aggregate(stages).toArray())).to.deep.equal(["north"]);
  });

  it("returns nothing for an index that does not exist", async () => {
    expect(await search({ index: "nope" })).to.deep.equal([]);
  });

  const refused: [string, Document][] = [
    ["a vector of other dimensions", { queryVector: [1, 0] }],
    ["no vector", { queryVector: [] }],
    ["a limit above the candidates", { limit: 11 }],
    ["more than 10,000 candidates", { numCandidates: 10_001 }],
    ["a limit of zero", { limit: 0 }],
    ["no candidates", { numCandidates: undefined }],
    ["a filter on a path that is not declared", { filter: { text: "x" } }],
    ["an operator that filters do not have", { filter: { group: { $regex: "e" } } }],
    ["a path that is no vector", { path: "group" }],
    ["no path", { path: undefined }],
  ];
  for (const [title, options] of refused) {
    it(`refuses ${title}`, async () => {
      const error = await collection
        .aggregate([{ $vectorSearch: query(options) }])
        .toArray()
        .catch((refusal: unknown) => refusal);
      expect(error).to.have.property("name", "MongoServerError");
    });
  }

  it("refuses $vectorSearch after another stage", async () => {
    await expectFailure(
      () => collection.aggregate([{ $match: {} }, { $vectorSearch: query() }]).toArray(),
      [40_602, 40_600],
    );
  });

  const words = (query: string, filter: Document[] = []) =>
    collection
      .aggregate([
        { $search: { index: "by_text", compound: { must: [{ text: { query, path: ["text"] } }], filter } } },
        { $project: { score: { $meta: "searchScore" } } },
      ])
      .toArray();

  it("finds words whatever their ending, the rarer first", async () => {
    expect(await idsOf(words("blows"))).to.have.lengthOf(4);
    const found = await words("northeast winds");
    expect(found[0]?._id).to.equal("northeast");
    expect(found[0]?.score).to.be.greaterThan(found[1]?.score);
  });

  it("filters without scoring", async () => {
    const all = await words("wind");
    const odd = await words("wind", [{ equals: { path: "group", value: "odd" } }]);
    expect(odd.map(({ _id }) => _id)).to.have.members(["north", "west"]);
    for (const { _id, score } of odd) expect(score).to.equal(all.find((one) => one._id === _id)?.score);
    expect(await words("wind", [{ in: { path: "group", value: ["none"] } }])).to.deep.equal([]);
  });

  it("finds nothing for words that occur nowhere", async () => {
    expect(await words("submarine")).to.deep.equal([]);
  });
});
