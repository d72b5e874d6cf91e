import { expect } from "chai";
import type { Collection, Document } from "mongodb";
import { emptyCollection, withFreshServer } from "./support.ts";

const definition = {
  mappings: {
    dynamic: false,
    fields: {
      text: { type: "string" },
      title: { type: "string" },
      tenant: { type: "token" },
      doc: { type: "token" },
      live: { type: "boolean" },
    },
  },
};

function withTexts(documents: Document[], work: (things: Collection<Document>) => Promise<void>): Promise<void> {
  return withFreshServer(async (db) => {
    const things = db.collection<Document>("things");
    if (documents.length > 0) await things.insertMany(documents);
    else await emptyCollection(db);
    await things.createSearchIndex({ name: "words", definition });
    await work(things);
  });
}

type Clauses = { query: string; path?: string | string[]; filter?: Document[] };

async function search(
  things: Collection<Document>,
  { filter = [], ...clause }: Clauses,
): Promise<{ _id: unknown; score: number }[]> {
  const text = { path: "text", ...clause };
  const stages = [
    { $search: { index: "words", compound: { must: [{ text }], filter } } },
    { $project: { score: { $meta: "searchScore" }, tenant: 1 } },
  ];
  const found = await things.aggregate(stages).toArray();
  return found.map(({ _id, score }) => ({ _id, score }));
}

const ids = (found: { _id: unknown }[]) => found.map(({ _id }) => _id);
const ofTenant = (value: string) => [{ equals: { path: "tenant", value } }];

/** BM25 with the weight of words as Lucene has it, k1 1.6 and b 0.75, over the documents of one tenant. */
function bm25(texts: string[][], query: string[]): number[] {
  const average = texts.reduce((sum, words) => sum + words.length, 0) / texts.length;
  return texts.map((words) =>
    query.reduce((sum, term) => {
      const having = texts.filter((other) => other.includes(term)).length;
      const frequency = words.filter((word) => word === term).length;
      const weight = Math.log(1 + (texts.length - having + 0.5) / (having + 0.5));
      return sum + (weight * frequency * 2.2) / (frequency + 1.6 * (0.25 + (0.75 * words.length) / average));
    }, 0),
  );
}

describe("embedded store: $search", () => {
  it("scores by BM25 over the tenant's own documents only", () => {
    const texts = ["lorem ipsum dolor", "dolor dolor sit", "lorem lorem lorem", "sit ipsum lorem", "amet magna dolor"];
    const others = Array.from({ length: 200 }, (_, n) => ({
      _id: `o${n}`,
      tenant: "other",
      text: "lorem lorem dolor",
    }));
    const documents: Document[] = texts.map((text, n) => ({ _id: n, tenant: "mine", text }));
    return withTexts([...documents, ...others], async (things) => {
      const found = await search(things, { query: "lorem dolor", filter: ofTenant("mine") });
      const split = texts.map((text) => text.split(" "));
      const wanted = bm25(split, ["lorem", "dolor"]);
      expect(found).to.have.length(5);
      for (const { _id, score } of found) expect(score).to.be.closeTo(wanted[Number(_id)] ?? -1, 1e-6);
      const scores = found.map(({ score }) => score);
      expect(scores).to.deep.equal([...scores].sort((a, b) => b - a));
    });
  });

  it("finds inflected forms, whatever the case and the accents", () =>
    withTexts([{ _id: 1, text: "The Dogs were WALKING past the café" }], async (things) => {
      for (const query of ["dog", "walks", "walked", "cafe", "CAFÉ"]) {
        expect(ids(await search(things, { query })), query).to.deep.equal([1]);
      }
      expect(await search(things, { query: "cat" })).to.deep.equal([]);
    }));

  it("finds words of scripts without spaces, and those with signs that are optional", () => {
    const texts = ["東京の図書館は九時に開く。", "เมืองหลวงของไทย", "도서관은 서울에 있다", "كَتَبَ الطَّالِبُ الدَّرْسَ", "猫"];
    return withTexts(
      texts.map((text, n) => ({ _id: n, text })),
      async (things) => {
        const queries = ["図書館", "เมืองหลวง", "도서관", "الطالب", "猫"];
        for (const [n, query] of queries.entries())
          expect(ids(await search(things, { query })), query).to.deep.equal([n]);
      },
    );
  });

  it("takes any text as words: quotes, operators and signs of FTS5 mean nothing", () =>
    withTexts([{ _id: 1, text: "alpha beta" }], async (things) => {
      for (const query of [
        '"alpha',
        "alpha AND nothing",
        "NOT alpha",
        "alpha*",
        "text:alpha",
        "(alpha",
        "alpha) OR (",
        "{c0}: alpha",
        "-alpha ^",
      ]) {
        expect(ids(await search(things, { query })), query).to.deep.equal([1]);
      }
      for (const query of ["", "   ", '"', "*", "()", "\0"])
        expect(await search(things, { query }), query).to.deep.equal([]);
    }));

  it("searches only the given paths", () =>
    withTexts(
      [
        { _id: 1, text: "red green", title: "blue" },
        { _id: 2, text: "red", title: "green" },
      ],
      async (things) => {
        expect(ids(await search(things, { query: "green", path: "title" }))).to.deep.equal([2]);
        expect(ids(await search(things, { query: "green", path: ["title", "text"] }))).to.have.members([1, 2]);
      },
    ));

  it("applies its filters, also when few of many documents match", () => {
    const documents = Array.from({ length: 600 }, (_, n) => ({
      _id: n,
      tenant: "t",
      doc: `d${n % 100}`,
      live: n % 2 === 0,
      text: `common word${n}`,
    })); // prettier-ignore
    return withTexts(documents as Document[], async (things) => {
      const filter = [
        ...ofTenant("t"),
        { in: { path: "doc", value: ["d4", "d5"] } },
        { equals: { path: "live", value: true } },
      ];
      const found = await search(things, { query: "common", filter });
      expect(ids(found)).to.have.members([4, 104, 204, 304, 404, 504]);
    });
  });

  it("follows inserts, changes of text and of tenant, and deletes", () =>
    withTexts([], async (things) => {
      await things.insertMany([
        { _id: 1, tenant: "a", text: "apple" },
        { _id: 2, tenant: "a", text: "apple pie" },
      ] as Document[]);
      const inTenant = (tenant: string, query: string) => search(things, { query, filter: ofTenant(tenant) }).then(ids);
      expect(await inTenant("a", "apple")).to.deep.equal([1, 2]);
      await things.updateOne({ _id: 1 as never }, { $set: { text: "pear" } });
      await things.updateOne({ _id: 2 as never }, { $set: { tenant: "b" } });
      expect(await inTenant("a", "apple")).to.deep.equal([]);
      expect(await inTenant("a", "pear")).to.deep.equal([1]);
      expect(await inTenant("b", "apple")).to.deep.equal([2]);
      await things.deleteMany({});
      expect(await search(things, { query: "apple pear pie" })).to.deep.equal([]);
    }));

  it("refuses unsupported options, and returns nothing for an index that does not exist", () =>
    withTexts([{ _id: 1, text: "x" }], async (things) => {
      const run = (stage: Document) =>
        things
          .aggregate([{ $search: stage }])
          .toArray()
          .catch((error: unknown) => error);
      const text = (operand: Document) => ({ compound: { must: { text: { query: "x", path: "text", ...operand } } } });
      expect(await run({ index: "none", ...text({}) })).to.deep.equal([]);
      expect(await run({ index: "words", ...text({ path: "other" }) })).to.include({ code: 8 });
      expect(await run({ index: "words", ...text({ fuzzy: {} }) })).to.include({ code: 40_415 });
      expect(await run({ index: "words", phrase: { query: "x", path: "text" } })).to.include({ code: 40_415 });
    }));
});
