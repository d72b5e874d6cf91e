import { expect } from "chai";
import { Binary, type Document } from "mongodb";
import { openStore } from "../../src/store/store.ts";
import { emptyCollection, inFolder, quiet, startIn, withFreshServer } from "./support.ts";

const filter = (path: string) => ({ type: "filter", path });
const vector = (path: string) => ({ type: "vector", path, numDimensions: 512, similarity: "cosine" });
const texts = (...filters: string[]) => ({
  mappings: {
    dynamic: false,
    fields: {
      content: { type: "string" },
      title: { type: "string" },
      ...Object.fromEntries(filters.map((path) => [path, { type: "token" }])),
      live: { type: "boolean" },
    },
  },
});

/** The indexes and a chunk, as they were before there were collections. */
const earlierIndexes = [
  {
    name: "chunks_embedding",
    type: "vectorSearch",
    definition: { fields: [vector("embedding"), filter("tenantId"), filter("documentId"), filter("live")] },
  },
  { name: "chunks_text", type: "search", definition: texts("tenantId", "documentId") },
];
const earlierChunk = {
  _id: "doc_1:1:0",
  tenantId: "ten_1",
  documentId: "doc_1",
  version: 1,
  n: 0,
  live: true,
  title: "Boilers",
  content: "A valve of brass",
  model: "small",
  embedding: Binary.fromFloat32Array(new Float32Array(512).fill(1)),
};

describe("embedded store: definitions of search indexes", () => {
  it("get the paths that a new release filters by, over what is there, and keep them", async () => {
    await inFolder(async (folder) => {
      for (const isFirst of [true, false]) {
        const server = await startIn(folder);
        const options = { url: server.url, db: "upgraded", timeoutMs: 5_000, logger: quiet };
        try {
          if (isFirst) {
            const { MongoClient } = await import("mongodb");
            const client = new MongoClient(server.url);
            const chunks = client.db("upgraded").collection<Document>("chunks");
            await chunks.createIndex({ tenantId: 1, documentId: 1, version: 1, n: 1 }, { name: "document" });
            await chunks.createSearchIndexes(earlierIndexes);
            await chunks.insertOne({ ...earlierChunk, _id: "doc_1:1:0" as unknown as Document["_id"] });
            await client.close();
          }
          const store = await openStore(options);
          const vector = new Float32Array(512).fill(1);
          const asked = {
            vector,
            vectors: new Map([["small", vector]]),
            model: "small",
            isLengthShared: true,
            limit: 5,
          };
          const search = async (collections: string[]) => {
            const { hits: found } = await store.chunks.searchVectors("ten_1", { ...asked, collections });
            const worded = await store.chunks.searchText("ten_1", { ...asked, collections, text: "valve" });
            return [found, worded].map((hits) => hits.map(({ _id }) => _id));
          };
          expect(await search(["default"])).to.deep.equal([["doc_1:1:0"], ["doc_1:1:0"]]);
          expect(await search(["pumps", "default"])).to.deep.equal([["doc_1:1:0"], ["doc_1:1:0"]]);
          expect(await search(["pumps"])).to.deep.equal([[], []]);
          await store.close();
        } finally {
          await server.close();
        }
      }
    });
  });

  it("file the words of other texts anew, and refuse an index that is not there", async () => {
    await withFreshServer(async (db) => {
      const things = await emptyCollection(db);
      await things.insertOne({ tenant: "a", title: "valve", body: "pump" });
      await things.createSearchIndex({ name: "words", definition: texts("tenant") });
      const refusal = async (name: string, definition: Document) =>
        things.updateSearchIndex(name, definition).then(
          () => "none",
          (error: { codeName?: string }) => error.codeName,
        );
      expect(await refusal("words", texts("tenant", "group"))).to.equal("none");
      const [index] = (await things.listSearchIndexes().toArray()) as Document[];
      expect(index?.latestDefinition).to.deep.equal(texts("tenant", "group"));
      const other = { mappings: { dynamic: false, fields: { body: { type: "string" } } } };
      expect(await refusal("words", other)).to.equal("none");
      const find = (query: string) =>
        things
          .aggregate([{ $search: { index: "words", compound: { must: [{ text: { query, path: "body" } }] } } }])
          .toArray();
      expect([(await find("pump")).length, (await find("valve")).length]).to.deep.equal([1, 0]);
      await things.insertOne({ tenant: "a", title: "valve", body: "pump and valve" });
      expect((await find("pump")).length, "what is written later").to.equal(2);
      expect(await refusal("nothing", texts("tenant"))).to.equal("IndexNotFound");
    });
  });
});
