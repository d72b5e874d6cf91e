import { expect } from "chai";
import { fuseRanks } from "../../src/rag/fuse-ranks.ts";
import { inBatches } from "../../src/rag/index-document.ts";
import { firstLineOf } from "../../src/rag/parse/section.ts";
import { lexicalQuery } from "../../src/rag/query-words.ts";
import { tagsOf } from "../../src/rag/schemas.ts";
import { documentStates, documentStatesBefore, documentTransitions } from "../../src/store/document-state.ts";
import { scanText, scanVectors, similarity } from "../../src/store/exact-scan.ts";

async function* from<T>(items: Iterable<T>): AsyncGenerator<T> {
  yield* items;
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

describe("the words of a query", () => {
  it("are the significant ones, each once", () => {
    expect(lexicalQuery("What does the pump do, and WHAT is a Pump-house for?")).to.equal("pump house");
    expect(lexicalQuery("Can two pumps share one valve?")).to.equal("two pumps share valve");
    expect(lexicalQuery("Wie funktioniert die Kühlung?")).to.equal("wie funktioniert die kühlung");
  });

  it("are read without what follows an apostrophe in English, and with it elsewhere", () => {
    expect(lexicalQuery("Newton's method doesn’t converge, and the pumps' valves won't open")).to.equal(
      "newton method converge pumps valves open",
    );
    expect(lexicalQuery("l'eau d'un puits, O'Reilly, 5's")).to.equal("l eau d un puits o reilly 5 s");
  });

  it("are all of them where none is significant, and the query itself where it has none", () => {
    expect(lexicalQuery("To be, or not to be")).to.equal("to be or not");
    expect(lexicalQuery("?!")).to.equal("?!");
  });

  it("are 64 at most", () => {
    const long = Array.from({ length: 1_000 }, (_, index) => `word${index}`).join(" ");
    expect(lexicalQuery(long).split(" ")).to.have.length(64);
  });
});

describe("document states", () => {
  it("end only in deletion, which every state can reach", () => {
    for (const state of documentStates) {
      if (state === "deleting") expect(documentTransitions[state]).to.deep.equal([]);
      else expect(documentTransitions[state]).to.include("deleting");
    }
  });

  it("never lead from indexed back to an unfinished state", () => {
    for (const state of ["queued", "processing", "failed"] as const)
      expect(documentStatesBefore(state)).not.to.include("indexed");
  });
});

describe("rank fusion", () => {
  it("puts results of both lists before those of one, by 1 / (60 + rank)", () => {
    expect(
      fuseRanks(
        [
          ["a", "b", "c"],
          ["c", "d"],
        ],
        (item) => item,
      ).map(({ item }) => item),
    ).to.deep.equal(["c", "a", "b", "d"]);
  });

  it("keeps the order of a single list", () => {
    expect(fuseRanks([["x", "y", "z"], []], (item) => item).map(({ item }) => item)).to.deep.equal(["x", "y", "z"]);
  });
});

describe("exact scan", () => {
  const vectorOf = (...values: number[]) => ({ toFloat32Array: () => Float32Array.from(values) });
  const chunk = (id: string, ...values: number[]) =>
    ({ _id: id, documentId: "d", version: 1, content: id, embedding: vectorOf(...values) }) as never;

  it("scores as Atlas does", () => {
    const up = Float32Array.from([0, 2]);
    expect(similarity(up, Float32Array.from([0, 5]))).to.be.closeTo(1, 1e-9);
    expect(similarity(up, Float32Array.from([3, 0]))).to.be.closeTo(0.5, 1e-9);
    expect(similarity(up, Float32Array.from([0, -1]))).to.be.closeTo(0, 1e-9);
    expect(similarity(up, new Float32Array(2))).to.equal(0.5);
  });

  it("keeps the nearest, best first, and skips vectors of another length", async () => {
    const chunks = Array.from({ length: 500 }, (_, index) =>
      chunk(`c${index}`, Math.cos(index / 300), Math.sin(index / 300)),
    );
    const hits = await scanVectors([...chunks.reverse(), chunk("odd", 1, 0, 0)], {
      vector: Float32Array.from([1, 0]),
      limit: 3,
    });
    expect(hits.map(({ _id }) => _id)).to.deep.equal(["c0", "c1", "c2"]);
  });

  it("finds words, the rarer the better", () => {
    const chunks = ["the pump", "the valve and the pump", "the the the"].map((content) => ({
      title: "Water",
      content,
    }));
    expect(scanText(chunks, "The VALVE")[0]?.content).to.equal("the valve and the pump");
    expect(scanText(chunks, "water")).to.have.length(3);
    expect(scanText(chunks, "nothing")).to.deep.equal([]);
  });
});

describe("titles and tags", () => {
  it("takes the first significant line", () => {
    expect(firstLineOf("\n\n  ## Pump P-100\ntext")).to.equal("Pump P-100");
    expect(firstLineOf(" \n ")).to.equal(undefined);
  });

  it("distinguishes numbers from texts", () => {
    expect(tagsOf({ year: 2024, name: "2024", isOpen: true })).to.deep.equal([
      "year=2024",
      'name="2024"',
      "isOpen=true",
    ]);
  });
});

describe("batches of chunks", () => {
  it("regroups without losing or reordering", async () => {
    const batches = await collect(inBatches(from([[1, 2, 3], [], [4], [5, 6, 7, 8]]), 3));
    expect(batches).to.deep.equal([
      [1, 2, 3],
      [4, 5, 6],
      [7, 8],
    ]);
  });
});
