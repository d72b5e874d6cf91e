import { expect } from "chai";
import { checkLines } from "../../src/batches/file/read-lines.ts";

const CHUNK_BYTES = 256 << 10;
const endpoint = "/v1/embeddings";
const line = (n: number) =>
  JSON.stringify({ custom_id: `line ${n}`, method: "POST", url: endpoint, body: { input: "x" } });

const share = <T>(part: () => Promise<T>) => part();

/** A file that never ends, and how much of it was read. */
function endless(unit: string) {
  const read = { chunks: 0 };
  async function* chunks() {
    for (;;) {
      read.chunks += 1;
      yield Buffer.alloc(CHUNK_BYTES - (CHUNK_BYTES % unit.length), unit);
    }
  }
  return { chunks: chunks(), read };
}

describe("a file of very many short lines", () => {
  it("is read no further than its first hundred faults", async () => {
    const { chunks, read } = endless("a\n");
    const { faults } = await checkLines(chunks, endpoint, share);
    expect(faults).to.have.lengthOf(100);
    expect(read.chunks).to.equal(1);
  });

  it("is read no further than 100,000 lines, were they empty, and is told so", async () => {
    const { chunks, read } = endless("\n");
    const { faults } = await checkLines(chunks, endpoint, share);
    expect(faults.map(({ code }) => code)).to.deep.equal(["too_many_lines"]);
    expect(read.chunks).to.equal(1);
  });

  it("lets others have their turn while it is read, a few lines in each turn of its tenant", async () => {
    let turns = 0;
    let shared = 0;
    let isOver = false;
    const takeTurns = () => {
      turns += 1;
      if (!isOver) setImmediate(takeTurns);
    };
    setImmediate(takeTurns);
    const lines = Buffer.from(Array.from({ length: 30_000 }, (_, n) => line(n)).join("\n"));
    const chunks = (async function* () {
      yield lines;
    })();
    const counted: typeof share = (part) => {
      shared += 1;
      return part();
    };
    expect((await checkLines(chunks, endpoint, counted)).total).to.equal(30_000);
    isOver = true;
    expect(shared).to.be.above(5);
    expect(turns).to.be.above(5);
  });

  it("has a fault where one line holds very many values", async () => {
    const chunks = (async function* () {
      yield Buffer.from(`${line(1)}\n${line(2).replace('"x"', `[${"[],".repeat(1_000_000)}0]`)}\n`);
    })();
    const { total, faults } = await checkLines(chunks, endpoint, share);
    expect([total, faults.map(({ code, line: at }) => [code, at])]).to.deep.equal([1, [["invalid_json_line", 2]]]);
  });
});
