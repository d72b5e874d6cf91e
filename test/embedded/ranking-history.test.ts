import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect } from "chai";
import type { Collection, Db, Document } from "mongodb";
import { emptyCollection, inFolder, withFreshServer, withServer } from "./support.ts";

const fields = { text: { type: "string" }, title: { type: "string" }, tenant: { type: "token" } };
const words = { name: "words", definition: { mappings: { dynamic: false, fields } } };
const vectors = {
  name: "vectors",
  type: "vectorSearch",
  definition: { fields: [{ type: "vector", path: "vector", numDimensions: 2, similarity: "cosine" }] },
};
const tenants = ["a", "b"];
const operations = 300;
const queries = 100;

type Thing = { _id: string; tenant: string; title: string; text: string };
type Random = () => number;

function makeRandom(seed: number): Random {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const below = (random: Random, end: number) => Math.floor(random() * end);

/** A few words that most texts have, and many that few have; some inflected, some with signs around them. */
function makeWord(random: Random): string {
  const stem = `${"bcdfghklmn"[below(random, 10)]}o${"prstvz"[below(random, Math.ceil(6 * random() ** 2))]}`;
  return stem + (["", "s", "ing", "é", "\0", " — "][below(random, 12)] ?? "");
}

function makeThing(random: Random, _id: string): Thing {
  const text = Array.from({ length: 1 + below(random, 60) }, () => makeWord(random)).join(" ");
  return { _id, tenant: tenants[below(random, 2)] ?? "a", title: makeWord(random), text };
}

/** Inserts, replaces, changes and deletes; answers what is there at the end, in an order of its own. */
async function liveThrough(things: Collection<Thing>, random: Random): Promise<Thing[]> {
  const living = new Map<string, Thing>();
  for (let count = 0; count < operations; count++) {
    const ids = [...living.keys()];
    const known = ids[below(random, ids.length)];
    const kind = random();
    if (known === undefined || kind < 0.4) {
      const batch = Array.from({ length: 1 + below(random, 5) }, () => makeThing(random, `${random()}`));
      await things.insertMany(batch);
      for (const thing of batch) living.set(thing._id, thing);
    } else if (kind < 0.6) {
      const thing = makeThing(random, known);
      await things.replaceOne({ _id: known }, thing);
      living.set(known, thing);
    } else if (kind < 0.65) {
      const { tenant } = makeThing(random, known);
      await things.updateMany({ tenant }, { $set: { title: "updated" } });
      for (const thing of living.values()) if (thing.tenant === tenant) thing.title = "updated";
    } else {
      const gone = ids.slice(0, 1 + below(random, 4));
      await things.deleteMany({ _id: { $in: gone } });
      for (const id of gone) living.delete(id);
    }
  }
  return [...living.values()].sort((a, b) => (a._id < b._id ? 1 : -1));
}

async function rank(things: Collection<Thing>, query: string, tenant?: string) {
  const must = [{ text: { query, path: ["text", "title"] } }];
  const filter = tenant === undefined ? [] : [{ equals: { path: "tenant", value: tenant } }];
  const stages = [
    { $search: { index: "words", compound: { must, filter } } },
    { $project: { score: { $meta: "searchScore" } } },
  ];
  return things.aggregate<{ _id: string; score: number }>(stages).toArray();
}

async function makeThings(db: Db): Promise<Collection<Thing>> {
  const things = (await emptyCollection(db)) as unknown as Collection<Thing>; // only things are put in
  await things.createSearchIndex(words);
  return things;
}

async function expectSameRanking(old: Collection<Thing>, fresh: Collection<Thing>, random: Random): Promise<void> {
  let found = 0;
  for (let count = 0; count < queries; count++) {
    const query = Array.from({ length: 1 + below(random, 4) }, () => makeWord(random)).join(" ");
    const tenant = [...tenants, undefined][below(random, 3)];
    const [ranked, wanted] = [await rank(old, query, tenant), await rank(fresh, query, tenant)];
    const ids = (hits: { _id: string }[]) => hits.map(({ _id }) => _id);
    expect(ids(ranked), query).to.deep.equal(ids(wanted));
    const differences = wanted.map(({ score }, at) => Math.abs(score - (ranked[at]?.score ?? Number.NaN)));
    expect(Math.max(0, ...differences), query).to.be.at.most(1e-6);
    found += wanted.length;
  }
  expect(found).to.be.greaterThan(queries);
}

describe("embedded store: search results depend on the documents, not on their history", () => {
  for (const seed of [1, 2]) {
    it(`ranks and scores by words as a fresh store, after ${operations} random writes (seed ${seed})`, () =>
      withFreshServer((oldDb) =>
        withFreshServer(async (freshDb) => {
          const random = makeRandom(seed);
          const [old, fresh] = [await makeThings(oldDb), await makeThings(freshDb)];
          const living = await liveThrough(old, random);
          expect(living.length).to.be.greaterThan(50);
          await fresh.insertMany(living);
          await expectSameRanking(old, fresh, random);
        }),
      )).timeout(30_000);
  }

  it("scores words by how common they are now, after most documents were deleted", () =>
    withFreshServer(async (db) => {
      const things = await makeThings(db);
      const put = (count: number, make: (n: number) => Partial<Thing>) =>
        things.insertMany(
          Array.from({ length: count }, (_, n) => ({ _id: `${n}`, tenant: "a", title: "", text: "", ...make(n) })),
        );
      await put(400, () => ({ text: "nothing of that" }));
      await things.deleteMany({});
      await put(100, (n) => ({ text: n === 7 ? "the wayland window" : "the window" }));
      const [first, second] = await rank(things, "the wayland window", "a");
      expect(first?._id).to.equal("7");
      expect(first?.score).to.be.greaterThan(10 * (second?.score ?? Number.POSITIVE_INFINITY));
    }));

  it("puts equal scores in the order of _id, by words and by vectors", () =>
    withFreshServer(async (db) => {
      const things = db.collection<Document>("things");
      const make = (_id: number) => ({ _id, text: "same", vector: [1, 0] }) as Document;
      await things.insertMany([3, 1, 4, 2].map(make));
      await things.createSearchIndexes([words, vectors]);
      await things.deleteOne({ _id: 1 as never });
      await things.insertOne(make(1));
      const text = { $search: { index: "words", compound: { must: { text: { query: "same", path: "text" } } } } };
      const vector = {
        $vectorSearch: { index: "vectors", path: "vector", queryVector: [1, 1], numCandidates: 9, limit: 9 },
      };
      for (const stage of [text, vector]) {
        const found = await things.aggregate([stage]).toArray();
        expect(found.map(({ _id }) => _id)).to.deep.equal([1, 2, 3, 4]);
      }
    }));

  it("reindexes once the documents that an earlier version indexed differently", () =>
    inFolder(async (folder) => {
      const before = await withServer(folder, async (db) => {
        const things = await makeThings(db);
        await things.insertMany(Array.from({ length: 50 }, (_, n) => makeThing(makeRandom(n + 1), `${n}`)));
        return rank(things, "bop cop dor", "a");
      });
      const file = new DatabaseSync(join(folder, "data.sqlite"));
      file.exec(`DROP TABLE text_layouts; DROP TABLE f1; CREATE VIRTUAL TABLE f1 USING fts5(c0, c1, content='',
        contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2'); INSERT INTO f1 (rowid, c0) VALUES (9, 'old')`);
      file.close();
      for (let time = 0; time < 2; time++) {
        const after = await withServer(folder, (db) => rank(db.collection<Thing>("things"), "bop cop dor", "a"));
        expect(after).to.deep.equal(before);
      }
      expect(before).to.not.deep.equal([]);
    }));
});
