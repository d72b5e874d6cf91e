import { expect } from "chai";
import { Binary, type Collection, type Document } from "mongodb";
import { emptyCollection, withFreshServer } from "./support.ts";

const dimensions = 16;

/** Numbers that look random and are the same in every run. */
function makeRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
}

/** What Atlas documents as the score, straight from the formula. */
function scoreOf(a: readonly number[], b: readonly number[]): number {
  const dot = (x: readonly number[], y: readonly number[]) =>
    x.reduce((sum, value, at) => sum + value * (y[at] ?? 0), 0);
  return (1 + dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))) / 2;
}

type Chunk = { _id: number; tenant: string; doc: string; live: boolean; v: number[] };

function makeChunks(count: number): Chunk[] {
  const random = makeRandom(7);
  return Array.from({ length: count }, (_, n) => ({
    _id: n,
    tenant: n % 4 === 0 ? "small" : "large",
    doc: `d${n % 23}`,
    live: n % 9 !== 0,
    v: Array.from({ length: dimensions }, () => Math.fround(random())),
  }));
}

async function createIndex(things: Collection<Document>): Promise<void> {
  const filters = ["tenant", "doc", "live"].map((path) => ({ type: "filter", path }));
  const vector = { type: "vector", path: "v", numDimensions: dimensions, similarity: "cosine" };
  await things.createSearchIndex({
    name: "vectors",
    type: "vectorSearch",
    definition: { fields: [vector, ...filters] },
  });
}

const asStored = ({ v, ...rest }: Chunk): Document => ({
  ...rest,
  // Half of them as BSON vectors, half as arrays: both are indexed.
  v: rest._id % 2 === 0 ? Binary.fromFloat32Array(new Float32Array(v)) : v,
});

type Search = { queryVector: number[]; limit: number; filter?: Document };

async function search(
  things: Collection<Document>,
  { limit, ...query }: Search,
): Promise<{ id: unknown; score: number }[]> {
  const stage = { index: "vectors", path: "v", numCandidates: Math.max(limit, 50), limit, ...query };
  const project = { score: { $meta: "vectorSearchScore" }, tenant: 1 };
  const found = await things.aggregate([{ $vectorSearch: stage }, { $project: project }]).toArray();
  return found.map(({ _id, score }) => ({ id: _id, score }));
}

function expected(chunks: readonly Chunk[], { queryVector, limit }: Search) {
  return chunks
    .map((chunk) => ({ id: chunk._id, score: scoreOf(chunk.v, queryVector) }))
    .sort((a, b) => b.score - a.score)
    .slice(0, limit);
}

async function expectExact(things: Collection<Document>, chunks: readonly Chunk[], query: Search): Promise<void> {
  const found = await search(things, query);
  const wanted = expected(chunks, query);
  expect(found.map(({ id }) => id)).to.deep.equal(wanted.map(({ id }) => id));
  for (const [at, { score }] of found.entries()) expect(score).to.be.closeTo(wanted[at]?.score ?? -1, 1e-5);
}

describe("embedded store: $vectorSearch", () => {
  it("finds exactly the nearest by cosine, with and without filters, as documents come, change and go", () =>
    withFreshServer(async (db) => {
      const things = db.collection<Document>("things");
      const chunks = makeChunks(600);
      await things.insertMany(chunks.slice(0, 300).map(asStored));
      await createIndex(things);
      const queryVector = chunks[42]?.v ?? [];
      const check = (kept: readonly Chunk[], filter: Document | undefined, limit: number) =>
        expectExact(things, kept, { queryVector, limit, ...(filter ? { filter } : {}) });
      await check(chunks.slice(0, 300), undefined, 10);
      await things.insertMany(chunks.slice(300).map(asStored)); // from here on the index follows the writes
      const large = chunks.filter(({ tenant }) => tenant === "large");
      await check(chunks, undefined, 25);
      await check(large, { tenant: "large" }, 25);
      await check(
        large.filter(({ live }) => live),
        { tenant: "large", live: true },
        40,
      );
      await check(
        large.filter(({ doc }) => doc === "d3"),
        { tenant: "large", doc: { $in: ["d3", "none"] } },
        50,
      );
      await check(
        chunks.filter(({ doc }) => doc !== "d3"),
        { doc: { $ne: "d3" } },
        10,
      );

      await things.updateMany({ doc: "d5" }, { $set: { live: false } });
      await things.updateOne({ _id: 1 as never }, { $set: { v: queryVector, tenant: "small" } });
      await things.deleteMany({ doc: "d7" });
      const now = chunks
        .filter(({ doc }) => doc !== "d7")
        .map((chunk) => (chunk.doc === "d5" ? { ...chunk, live: false } : chunk))
        .map((chunk) => (chunk._id === 1 ? { ...chunk, v: queryVector, tenant: "small" } : chunk));
      await check(
        now.filter(({ tenant }) => tenant === "small"),
        { tenant: "small" },
        1,
      );
      await check(
        now.filter(({ tenant, live }) => tenant === "large" && live),
        { tenant: "large", live: true },
        30,
      );
    }));

  it("finds by any filter what a search of all finds and the filter leaves", () =>
    withFreshServer(async (db) => {
      const things = db.collection<Document>("things");
      const chunks = makeChunks(600);
      await things.insertMany(chunks.map(asStored));
      await createIndex(things);
      const random = makeRandom(11);
      const documents = [...new Set(chunks.map(({ doc }) => doc))];
      for (let turn = 0; turn < 60; turn += 1) {
        const queryVector = Array.from({ length: dimensions }, () => Math.fround(random()));
        const share = random() + 0.5; // from none of them to all
        const kept = new Set(documents.filter(() => random() + 0.5 < share));
        const limit = 1 + Math.floor((random() + 0.5) * 40);
        const all = await search(things, { queryVector, limit: chunks.length });
        const found = await search(things, { queryVector, limit, filter: { doc: { $in: [...kept] } } });
        const wanted = all.filter(({ id }) => kept.has(chunks[Number(id)]?.doc ?? ""));
        expect(found, `turn ${turn}`).to.deep.equal(wanted.slice(0, limit));
      }
    }));

  it("finds those that a filter leaves, also where all others are nearer", () =>
    withFreshServer(async (db) => {
      const things = db.collection<Document>("things");
      const queryVector = Array.from({ length: dimensions }, () => 1);
      const chunks = makeChunks(600).map((chunk, n) => {
        const live = n % 3 === 0;
        return { ...chunk, live, v: chunk.v.map((value) => Math.fround(value + (live ? -2 : 2))) };
      });
      await things.insertMany(chunks.map(asStored));
      await createIndex(things);
      const far = chunks.filter(({ live }) => live);
      await expectExact(things, far, { queryVector, limit: 12, filter: { live: true } });
    }));

  it("finds exactly the nearest among thousands, also where their vectors hardly differ", () =>
    withFreshServer(async (db) => {
      const random = makeRandom(3);
      const vector = () => Array.from({ length: dimensions }, () => Math.fround(random()));
      const [center, queryVector] = [vector(), vector()];
      const beside = () => center.map((value) => Math.fround(value + 0.004 * random()));
      const things = await emptyCollection(db);
      await createIndex(things);
      for (const makeVector of [vector, beside]) {
        await things.deleteMany({});
        const chunks = makeChunks(12_500).map((chunk) => ({ ...chunk, tenant: "one", v: makeVector() }));
        await things.insertMany(chunks.map(asStored));
        const check = (kept: readonly Chunk[], filter: Document, limit: number) =>
          expectExact(things, kept, { queryVector, limit, filter });
        await check(chunks, { tenant: "one" }, 1);
        await check(chunks, { tenant: "one" }, 12);
        await check(
          chunks.filter(({ live }) => live),
          { tenant: "one", live: true },
          12,
        );
        await things.deleteMany({ doc: "d7" });
        await check(
          chunks.filter(({ doc }) => doc !== "d7"),
          { tenant: "one" },
          12,
        );
        const some = ["d8", "d9", "d10", "d11", "d12", "d13"];
        for (const wanted of [some.slice(0, 4), some]) {
          await check(
            chunks.filter(({ doc }) => wanted.includes(doc)),
            { tenant: "one", doc: { $in: wanted } },
            12,
          );
        }
      }
    }));

  it("forgets the vectors of a write that was refused", () =>
    withFreshServer(async (db) => {
      const things = await emptyCollection(db);
      await createIndex(things);
      const [first, second] = makeChunks(2);
      if (first === undefined || second === undefined) throw new Error("there are two");
      await things.insertOne(asStored(first));
      expect(await search(things, { queryVector: first.v, limit: 5 })).to.have.length(1);
      const refusal = await things
        .insertOne({ ...asStored(second), _id: first._id as never })
        .catch((error: unknown) => error);
      expect(refusal).to.include({ code: 11000 });
      expect(await search(things, { queryVector: first.v, limit: 5 })).to.have.length(1);
    }));

  it("refuses an operator in the filter also while the index is empty", () =>
    withFreshServer(async (db) => {
      const things = await emptyCollection(db);
      await createIndex(things);
      const asked = search(things, {
        queryVector: makeChunks(1)[0]?.v ?? [],
        limit: 5,
        filter: { tenant: { $near: 1 } },
      });
      expect(await asked.catch((error: unknown) => error)).to.include({ name: "MongoServerError" });
    }));

  it("leaves out documents whose vector has another length, none, or no direction", () =>
    withFreshServer(async (db) => {
      const things = await emptyCollection(db);
      await createIndex(things);
      const zero = Array.from({ length: dimensions }, () => 0);
      await things.insertMany([
        { v: [1, 2] },
        { v: "text" },
        {},
        { v: zero },
        { v: Array.from({ length: dimensions }, () => 1) },
      ]);
      expect(await search(things, { queryVector: zero.map(() => 1), limit: 5 })).to.have.length(1);
    }));
});
