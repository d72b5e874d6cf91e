import { expect } from "chai";
import { findCandidates, rankByWords } from "../../src/rag/candidates.ts";
import { fuseRanks } from "../../src/rag/fuse-ranks.ts";
import { mixSearches, rankHits } from "../../src/rag/rank-hits.ts";
import { measureNearness } from "../../src/rag/word-nearness.ts";

const hit = (id: string, more: object = {}) =>
  ({
    _id: id,
    documentId: id,
    version: 1,
    n: 0,
    content: id,
    model: "m",
    similarity: 0.6,
    wordScore: 1,
    ...more,
  }) as never;
const idsOf = (hits: readonly { _id: string }[]) => hits.map(({ _id }) => _id).join("");
const offline = (text: string) => ({ text, isSemantic: () => false });
const semantic = (text: string) => ({ text, isSemantic: () => true });

const nearness = (...given: Parameters<typeof measureNearness>) => measureNearness(...given).nearness;

const filler = "word ".repeat(30);

describe("nearness of words", () => {
  it("is the share of the words that stand within a line, by their stems", () => {
    const near = "Installing the printers";
    const apart = `Installations are free. ${filler} A printer is not.`;
    expect(nearness(["install", "printer"], [near, apart])).to.deep.equal([1, 0.5]);
  });

  it("does not count parts of other words", () => {
    expect(nearness(["cat", "dog"], ["cat dog", "concat dogma"])).to.deep.equal([1, 0]);
  });

  it("counts rare words of English for more, and words that no text has for nothing", () => {
    const [rare = 0, common = 0, both] = nearness(["want", "zymurgy", "absent"], ["zymurgy", "want", "want zymurgy"]);
    expect(rare).to.be.greaterThan(2 * common);
    expect(both).to.equal(1);
  });

  it("reads words of other scripts, and those beside quotation marks and dashes", () => {
    expect(nearness(["größe", "ändern"], ["„Größe“—ändern"])).to.deep.equal([1]);
    expect(nearness(["размер", "шрифта"], ["Размер шрифта"])).to.deep.equal([1]);
  });
});

describe("the ranking of a query's hits", () => {
  it("puts a hit first whose words stand together, where the word scores are alike", () => {
    const apart = hit("a", { wordScore: 1.1, content: `purple ${filler} lantern` });
    const near = hit("b", { content: `the purple lantern ${filler}` });
    const rank = (text: string) => rankHits({ byText: rankByWords([apart, near], text).hits }, offline(text));
    const ranked = rank("purple lantern");
    expect(idsOf(ranked)).to.equal("ba");
    expect(ranked[0]?.score).to.be.greaterThan(ranked[1]?.score ?? 1);
    expect(idsOf(rank("lantern"))).to.equal("ab");
  });

  it("keeps hits by one rare word before those that are only spelt alike, but not before those of like meaning", () => {
    const found = { byText: [hit("a"), hit("b")], byVector: [[hit("c")]] };
    expect(idsOf(rankHits(found, offline("extdebug")))).to.equal("abc");
    expect(idsOf(rankHits(found, semantic("extdebug")))).to.equal("acb");
    for (const text of ["one two three four five", "会議室の予約方法"])
      expect(idsOf(rankHits(found, offline(text)))).to.equal("abc");
  });

  it("favours what words and vectors of words both find, and sets a hit of words behind all their vectors", () => {
    const vectors = Array.from({ length: 100 }, (_, at) => hit(at === 0 ? "c" : `v${at}`));
    const both = { byText: [hit("a"), hit("c")], byVector: [vectors] };
    expect(idsOf(rankHits(both, offline("one two three four five")).slice(0, 2))).to.equal("ca");
    const words = Array.from({ length: 30 }, (_, at) => hit(`w${at}`));
    const late = [...Array.from({ length: 60 }, (_, at) => hit(`x${at}`)), ...vectors.slice(20, 60)];
    const ranked = rankHits({ byText: [...words, ...late], byVector: [vectors] }, offline("one two three four five"));
    expect(idsOf(ranked.slice(0, 30))).to.equal(idsOf(words));
  });

  it("weighs lists by what is given", () => {
    expect(idsOf(fuseRanks([[hit("a")], [hit("b")]], ({ _id }) => _id, [1, 2]).map(({ item }) => item))).to.equal("ba");
  });

  it("mixes the best of each search for a judge", () => {
    const found = { byText: [hit("a"), hit("b"), hit("x")], byVector: [[hit("y"), hit("b"), hit("a")]] };
    const ranked = rankHits(found, semantic("any words"));
    expect(idsOf(ranked)).to.equal("abyx");
    expect(idsOf(mixSearches(ranked, found))).to.equal("aybx");
    expect(mixSearches(ranked, found)).to.have.members(ranked);
  });
});

describe("the candidates of a query", () => {
  it("move the query's vector towards the hits by words that are first once those near to each other are favoured", async () => {
    const searched: number[][] = [];
    const chunks = {
      searchText: async () => [
        hit("a", { content: `purple ${filler} lantern`, wordScore: 1.2, embedding: Float32Array.of(0, 1, 0, 0) }),
        hit("b", { content: "purple", wordScore: 1.1, embedding: Float32Array.of(0, 0, 1, 0) }),
        hit("c", { content: `the purple lantern ${filler}`, embedding: Float32Array.of(0, 0, 0, 1) }),
      ],
      searchVectors: async (_: string, { vector }: { vector: Float32Array }) => {
        searched.push([...vector]);
        return { hits: [] };
      },
    };
    const space = { model: "m", dimensions: 4, isLengthShared: false, vector: Float32Array.of(1, 0, 0, 0) };
    const search = { mode: "hybrid", text: "purple lantern", vectors: [space], limit: 10 } as const;
    await findCandidates({ store: { chunks } } as never, "tnt", search);
    const [[query, second, third, first = 0] = []] = searched;
    expect(query).to.equal(1);
    expect(third).to.equal(0);
    expect(second).to.be.greaterThan(0).and.lessThan(first);
  });
});
