import { join } from "node:path";
import { DatabaseSync, type SQLInputValue, type SQLOutputValue } from "node:sqlite";
import { expect } from "chai";
import { type Engine, openEngine } from "../../src/embedded/mongo/commands/command.ts";
import { findRows, type Query } from "../../src/embedded/mongo/query/query.ts";
import { makeCursors } from "../../src/embedded/mongo/wire/cursors.ts";
import { inFolder, quiet, withFreshServer, withServer } from "./support.ts";

const LARGE = 200;
const LARGE_BYTES = 200_000;
const SMALL = 300;

type Flow = { _id: number; text: string; name: string };

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

/** Reads all documents of a tenant by their index, and counts the bytes that SQLite gave for it. */
function watchBytes(engine: Engine, name: string) {
  const collection = engine.catalog.find("test", name);
  if (collection === undefined) throw new Error(`there is no collection ${name}`);
  let bytes = 0;
  const read = (shown: Pick<Query, "fields">) => {
    bytes = 0;
    return [...findRows(collection, { filter: { tenant: "t1" }, sort: { _id: -1 }, ...shown })].map((row) => {
      bytes += row.bytes.length;
      return row.document();
    });
  };
  return Object.assign(read, { bytes: () => bytes });
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

  it("is read without its large fields where none is shown, and whole where it is wanted", async () => {
    await inFolder(async (folder) => {
      const dataFile = join(folder, "data.sqlite");
      const text = "x".repeat(LARGE_BYTES);
      const documentOf = (n: number) => ({ _id: `${1_000 + n}`, tenant: "t1", name: `Flow ${n}`, text, steps: n });
      const largest = documentOf(0);
      const sort = { _id: -1 } as const;
      await withServer(folder, async (db) => {
        const flows = db.collection<typeof largest>("flows");
        await flows.createIndex({ tenant: 1, _id: -1 });
        await flows.insertMany(Array.from({ length: 50 }, (_, n) => documentOf(n)));
        await flows.insertOne({ ...largest, _id: "small", text: "y" });
        await flows.updateOne({ _id: "1001" }, { $set: { name: "Flow one" } });
        await flows.updateOne({ _id: "1002" }, { $set: { text: "short" } });
      });
      const engine = openEngine({ dataFile, logger: quiet });
      try {
        const read = watchBytes(engine, "flows");
        const shown = new Set(["_id", "name", "steps"]);
        const names = read({ fields: shown }).map(({ name }) => name);
        expect(names).to.have.lengthOf(51);
        expect(names).to.include.members(["Flow one", "Flow 2", "Flow 49"]);
        expect(read.bytes(), "all 51 without their texts").to.be.below(51 * 300);
        expect(read({ fields: new Set(["_id", "text"]) }).map((one) => one.text.length)).to.include(LARGE_BYTES);
        expect(read.bytes(), "with them").to.be.above(49 * LARGE_BYTES);
      } finally {
        engine.storage.close();
      }
      await withServer(folder, async (db) => {
        const flows = db.collection<typeof largest>("flows");
        const all = await flows.find({ tenant: "t1" }).sort(sort).toArray();
        const wanted = Array.from({ length: 50 }, (_, n) => documentOf(n)).map((one) => {
          if (one._id === "1001") return { ...one, name: "Flow one" };
          return one._id === "1002" ? { ...one, text: "short" } : one;
        });
        expect(all).to.deep.equal([{ ...largest, _id: "small", text: "y" }, ...wanted.toReversed()]);
        expect(Object.keys(all.at(-1) ?? {}), "in their order").to.deep.equal(Object.keys(largest));
        const texts = await flows.find({ tenant: "t1", steps: { $gte: 48 } }, { projection: { text: 1 } }).toArray();
        expect(texts.map((one) => one.text.length)).to.deep.equal([LARGE_BYTES, LARGE_BYTES]);
        await flows.deleteMany({ tenant: "t1" });
        expect(await flows.countDocuments({})).to.equal(0);
      });
    });
  });

  it("of a field that becomes large while the list is read has it on the pages that follow", async () => {
    await withFreshServer(async (db) => {
      const flows = db.collection<{ _id: number; text: string }>("flows");
      await flows.insertMany(Array.from({ length: 20 }, (_, n) => ({ _id: n, text: "short" })));
      const cursor = flows.find({ _id: { $gte: 0 } }, { projection: { text: 1 }, sort: { _id: 1 }, batchSize: 2 });
      await cursor.next();
      await flows.updateOne({ _id: 19 }, { $set: { text: "x".repeat(LARGE_BYTES) } });
      const rest = await cursor.toArray();
      expect(rest.at(-1)?.text).to.have.lengthOf(LARGE_BYTES);
    });
  });

  it("of a file of an earlier layout is read as before, and kept by the present one when it is changed", async () => {
    await inFolder(async (folder) => {
      const text = "x".repeat(LARGE_BYTES);
      await withServer(folder, async (db) => {
        await db.collection<Flow>("flows").insertOne({ _id: 1, text, name: "a" });
      });
      const sqlite = new DatabaseSync(join(folder, "data.sqlite"));
      const table = `c${sqlite.prepare("SELECT id FROM collections").get()?.id}`;
      sqlite.exec(`UPDATE ${table} SET doc = ifnull(whole, doc); ALTER TABLE ${table} DROP COLUMN whole;
        DROP TABLE large_fields;`);
      sqlite.close();
      await withServer(folder, async (db) => {
        const flows = db.collection<Flow>("flows");
        expect(await flows.find({ _id: { $gte: 0 } }, { projection: { name: 1 } }).toArray()).to.deep.equal([
          { _id: 1, name: "a" },
        ]);
        await flows.updateOne({ _id: 1 }, { $set: { name: "b" } });
        expect(await flows.findOne({ _id: 1 })).to.deep.equal({ _id: 1, text, name: "b" });
      });
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
    expect(read, "of the default 101: what 5 ms and one more bring").to.be.within(2, 3);
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
