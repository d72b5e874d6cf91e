import { expect } from "chai";
import { Binary, type Db, type Document } from "mongodb";
import { inFolder, withServer } from "./support.ts";

const vector = (...values: number[]) => Binary.fromFloat32Array(new Float32Array(values));

async function fill(db: Db): Promise<void> {
  const things = db.collection<Document>("things");
  await things.createIndexes([
    { key: { email: 1 }, unique: true },
    { key: { tags: 1 } },
    { key: { at: 1 }, expireAfterSeconds: 3600 },
    { key: { state: 1 }, partialFilterExpression: { state: "open" }, name: "open" },
  ]);
  await things.createSearchIndex({
    name: "vectors",
    type: "vectorSearch",
    definition: {
      fields: [
        { type: "vector", path: "v", numDimensions: 2, similarity: "cosine" },
        { type: "filter", path: "tenant" },
      ],
    },
  });
  const fields = { text: { type: "string" }, tenant: { type: "token" } };
  await things.createSearchIndex({ name: "words", definition: { mappings: { dynamic: false, fields } } });
  await things.insertMany([
    { _id: 1, email: "a@x", tags: ["p", "q"], state: "open", tenant: "t", v: vector(1, 0), text: "walking the dogs" },
    { _id: 2, email: "b@x", tags: ["q"], state: "done", tenant: "t", v: vector(0, 1), text: "one cat", at: new Date() },
  ] as Document[]);
}

const nearest = { $vectorSearch: { index: "vectors", path: "v", queryVector: [0.1, 1], numCandidates: 5, limit: 2 } };
const walk = { $search: { index: "words", compound: { must: { text: { query: "walk dog", path: "text" } } } } };

describe("embedded store: restart", () => {
  it("keeps documents, every kind of index and what the indexes enforce", () =>
    inFolder(async (folder) => {
      await withServer(folder, fill);
      await withServer(folder, async (db) => {
        const things = db.collection<Document>("things");
        const refusal = await things.insertOne({ email: "a@x" }).catch((error: unknown) => error);
        expect(refusal).to.include({ code: 11000 });
        for (const [filter, count] of [
          [{ tags: "q" }, 2],
          [{ at: { $gte: new Date(0) } }, 1],
          [{ state: "open" }, 1],
        ] as const) {
          expect(await things.find(filter).toArray()).to.have.length(count);
        }
        expect((await things.aggregate([nearest]).toArray()).map(({ _id }) => _id)).to.deep.equal([2, 1]);
        expect((await things.aggregate([walk]).toArray()).map(({ _id }) => _id)).to.deep.equal([1]);
        const listed: Document[] = await things.listSearchIndexes().toArray();
        expect(listed.map(({ name, queryable }) => ({ name, queryable }))).to.deep.equal([
          { name: "vectors", queryable: true },
          { name: "words", queryable: true },
        ]);
      });
    }));
});
