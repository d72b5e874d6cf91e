import { join } from "node:path";
import type { SQLInputValue, SQLOutputValue } from "node:sqlite";
import { expect } from "chai";
import { type Engine, openEngine } from "../../src/embedded/mongo/engine.ts";
import { findRows } from "../../src/embedded/mongo/query/query.ts";
import { makeCursors } from "../../src/embedded/mongo/wire/cursors.ts";
import { inFolder, quiet, withServer } from "./support.ts";

const LARGE = 200;
const LARGE_BYTES = 200_000;
const SMALL = 300;

/** Counts the rows that each statement of an index reads. */
function watchReads(engine: Engine, name: string) {
  const collection = engine.catalog.find("test", name);
  const [index] = collection?.indexes ?? [];
  if (collection === undefined || index === undefined) throw new Error(`there is no index of ${name}`);
  const reads: number[] = [];
  const statement = index.keys.forward; // the index has the list's own order
  const all = statement.all.bind(statement) as (...given: SQLInputValue[]) => Record<string, SQLOutputValue>[];
  statement.all = ((...given: SQLInputValue[]) => {
    const rows = all(...given);
    reads.push(rows.length);
    return rows;
  }) as typeof statement.all; // of its two forms, the one that is used here
  const list = (limit: number) => [...findRows(collection, { filter: { tenant: "t1" }, sort: { _id: -1 }, limit })];
  return { reads, list };
}

describe("embedded store: a list of large documents", () => {
  it("is read a few at a time, and one of small documents at once", async () => {
    await inFolder(async (folder) => {
      await withServer(folder, async (db) => {
        for (const name of ["large", "small"]) await db.collection(name).createIndex({ tenant: 1, _id: -1 });
        const text = "x".repeat(LARGE_BYTES);
        for (let n = 0; n < LARGE; n += 50) {
          const some = Array.from({ length: 50 }, (_, at) => ({ _id: `${1_000 + n + at}`, tenant: "t1", text }));
          await db.collection<{ _id: string }>("large").insertMany(some);
        }
        const small = Array.from({ length: SMALL }, (_, at) => ({ _id: `${1_000 + at}`, tenant: "t1" }));
        await db.collection<{ _id: string }>("small").insertMany(small);
        const listed = await db
          .collection("large")
          .find({ tenant: "t1" })
          .project({ _id: 1 })
          .sort({ _id: -1 })
          .toArray();
        expect(listed, "over the wire").to.have.lengthOf(LARGE);
        expect(new Set(listed.map(({ _id }) => _id)).size).to.equal(LARGE);
      });
      const engine = openEngine({ dataFile: join(folder, "data.sqlite"), logger: quiet });
      try {
        const large = watchReads(engine, "large");
        expect(large.list(LARGE)).to.have.lengthOf(LARGE);
        large.reads.length = 0; // the sizes are known now
        expect(large.list(LARGE)).to.have.lengthOf(LARGE);
        expect(large.reads.reduce((sum, count) => sum + count, 0)).to.equal(LARGE);
        expect(Math.max(...large.reads) * LARGE_BYTES).to.be.at.most(1 << 20);
        const small = watchReads(engine, "small");
        small.list(100);
        small.reads.length = 0;
        expect(small.list(100)).to.have.lengthOf(100);
        expect(small.reads).to.deep.equal([100]);
      } finally {
        engine.storage.close();
      }
    });
  });

  it("is given in several batches where reading it takes long, and loses none", () => {
    let now = 0;
    let read = 0;
    const results = Array.from({ length: 20 }, (_, n) => n)
      .values()
      .map(() => {
        now += 4;
        read += 1;
        return new Uint8Array(5);
      });
    const cursors = makeCursors(() => now);
    let { id } = cursors.open({ namespace: "n", results });
    expect(read, "of the default 101: what 10 ms and one more bring").to.be.within(3, 4);
    let batches = 1;
    for (; !id.isZero(); batches += 1) ({ id } = cursors.next(id.toNumber(), "n", undefined));
    expect([read, batches > 4]).to.deep.equal([20, true]);
  });

  it("is given at once where one batch is all that is wanted", () => {
    let now = 0;
    const results = Array.from({ length: 20 }, () => new Uint8Array(5))
      .values()
      .map((bytes) => {
        now += 4;
        return bytes;
      });
    const { id } = makeCursors(() => now).open({ namespace: "n", results, isSingleBatch: true });
    expect([id.isZero(), now]).to.deep.equal([true, 80]);
  });
});
