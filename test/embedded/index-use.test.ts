import { join } from "node:path";
import { expect } from "chai";
import type { Db, Document, IndexDescription } from "mongodb";
import type { Sort } from "../../src/embedded/mongo/bson/order.ts";
import { type Engine, openEngine } from "../../src/embedded/mongo/commands/command.ts";
import { compileFilter } from "../../src/embedded/mongo/query/filter.ts";
import { indexedValues } from "../../src/embedded/mongo/query/indexed-values.ts";
import { type Plan, planQuery } from "../../src/embedded/mongo/query/planner.ts";
import { runPlan } from "../../src/embedded/mongo/query/query.ts";
import { jobCollection } from "../../src/store/job-store.ts";
import { inFolder, quiet, withServer } from "./support.ts";

const documents = Array.from({ length: 500 }, (_, n) => ({
  _id: n,
  tenant: `t${n % 10}`,
  state: n % 3 === 0 ? "open" : "done",
  at: new Date(1_700_000_000_000 + n * 1000),
  tags: [`a${n % 7}`, `b${n % 5}`],
  ...(n % 50 === 0 ? { rare: n } : {}),
}));

/** Each collection has the documents and these indexes. */
const indexes: Record<string, IndexDescription[]> = {
  none: [],
  compound: [{ key: { tenant: 1, state: 1, at: -1 } }],
  ordered: [{ key: { tenant: 1, at: 1 } }],
  tags: [{ key: { tags: 1 } }],
  sparse: [{ key: { rare: 1 }, sparse: true }],
  partial: [{ key: { at: 1 }, partialFilterExpression: { state: "open" } }],
};

const statuses = ["completed", "completed", "running", "queued"];

async function fill(db: Db): Promise<void> {
  for (const [name, declared] of Object.entries(indexes)) {
    await db.collection<Document>(name).insertMany(documents as Document[]);
    if (declared.length > 0) await db.collection(name).createIndexes(declared);
  }
  const jobs = Array.from({ length: 400 }, (_, n) => ({
    _id: `job_${1_000 + n}`,
    queue: n % 2 === 0 ? "even" : "odd",
    status: statuses[n % 4] ?? "",
    tenantId: `t${n % 5}`,
  }));
  await db.collection(jobCollection.name).createIndexes([...jobCollection.indexes]);
  await db.collection<Document>(jobCollection.name).insertMany(jobs as Document[]);
}

type Examined = { plan: Plan; index: string | undefined; examined: number; found: Document[] };

describe("embedded store: use of indexes", () => {
  let engine: Engine;
  let close = async () => {};

  before("fill a data file, and open it without a server", async () => {
    const closed = Promise.withResolvers<void>();
    const opened = Promise.withResolvers<void>();
    const kept = inFolder(async (folder) => {
      await withServer(folder, fill);
      engine = openEngine({ dataFile: join(folder, "data.sqlite"), logger: quiet });
      opened.resolve();
      await closed.promise;
      engine.storage.close();
    });
    close = () => {
      closed.resolve();
      return kept;
    };
    await Promise.race([opened.promise, kept]);
  });
  after("close it", () => close());

  /** How the planner finds the documents, and how many it looks at until it has those that are wanted. */
  function examine(name: string, filter: Document, sort?: Sort, limit = Number.POSITIVE_INFINITY): Examined {
    const collection = engine.catalog.find("test", name);
    if (collection === undefined) throw new Error(`there is no collection ${name}`);
    const plan = planQuery(collection, { filter, sort });
    const matches = compileFilter(filter);
    const found: Document[] = [];
    let examined = 0;
    for (const row of runPlan(collection, { ...plan, isExact: true }, filter)) {
      examined++;
      if (matches(row.document())) found.push(row.document());
      if (plan.isSorted && found.length === limit) break;
    }
    return { plan, index: plan.scan?.index.name, examined, found };
  }

  it("without an index reads every document", () => {
    const { index, examined } = examine("none", { tenant: "t1" });
    expect({ index, examined }).to.deep.equal({ index: undefined, examined: 500 });
  });

  it("finds by _id without an index of its own", () => {
    const { index, examined } = examine("none", { _id: 7 });
    expect({ index, examined }).to.deep.equal({ index: "_id_", examined: 1 });
  });

  it("serves equality, range and order of one compound index, reading no more than it returns", () => {
    const filter = { tenant: "t3", state: "open", at: { $gt: new Date(1_700_000_100_000) } };
    const { plan, examined, found } = examine("compound", filter, { at: -1 });
    expect(plan).to.include({ isSorted: true, isExact: true });
    expect(examined).to.equal(found.length).and.to.be.greaterThan(5);
    const times = found.map(({ at }) => Number(at));
    expect(times).to.deep.equal(times.toSorted((a, b) => b - a));
  });

  it("finds the oldest job that waits on a queue without reading others", () => {
    const waiting = { queue: "odd", status: "queued", notBefore: { $not: { $gt: new Date() } } };
    const { plan, examined, found } = examine(jobCollection.name, waiting, { _id: 1 }, 1);
    expect(plan.isSorted).to.equal(true);
    expect({ examined, found: found.length }).to.deep.equal({ examined: 1, found: 1 });
  });

  it("reads only as many documents of a sorted index as the limit asks for, backwards too", () => {
    const { plan, examined } = examine("ordered", { tenant: "t3" }, { at: -1 }, 5);
    expect(plan.scan?.isBackward).to.equal(true);
    expect(examined).to.equal(5);
  });

  it("sorts in memory when the index has another order", () => {
    const { plan, index } = examine("ordered", { tenant: "t3" }, { state: 1, at: 1 });
    expect({ isSorted: plan.isSorted, index }).to.deep.equal({ isSorted: false, index: "tenant_1_at_1" });
  });

  it("serves $in by one range a value", () => {
    expect(examine("ordered", { tenant: { $in: ["t1", "t2", "none"] } }).examined).to.equal(100);
  });

  it("finds a document once by several elements of an array", () => {
    const { index, found } = examine("tags", { tags: { $in: ["a1", "b1"] } });
    expect(index).to.equal("tags_1");
    const wanted = documents.filter(({ tags }) => tags.includes("a1") || tags.includes("b1"));
    expect(found.map(({ _id }) => _id)).to.have.members(wanted.map(({ _id }) => _id));
  });

  it("uses a sparse index only where a document without the field cannot match", () => {
    expect(examine("sparse", { rare: { $gte: 0 } }).examined).to.equal(10);
    expect(examine("sparse", { rare: null }))
      .to.include({ index: undefined })
      .and.to.have.nested.property("found.length", 490);
    expect(examine("sparse", {}, { rare: 1 }).index).to.equal(undefined);
  });

  it("uses a partial index only for queries that stay inside it", () => {
    const at = { $lt: new Date(1_700_000_060_000) };
    expect(examine("partial", { state: "open", at })).to.include({ index: "at_1", examined: 20 });
    expect(examine("partial", { at }).index).to.equal(undefined);
  });

  it("gives the values of a field in their order where an index has it behind what the filter fixes", () => {
    const valuesOf = (name: string, filter: Document, limit = 10) =>
      indexedValues(engine.catalog.find("test", name), { path: "state", filter, limit });
    expect(valuesOf("compound", { tenant: "t1" })).to.deep.equal(["done", "open"]);
    expect(valuesOf("compound", { tenant: "t1" }, 1)).to.deep.equal(["done"]);
    expect(valuesOf("compound", { tenant: "none" })).to.deep.equal([]);
    expect(valuesOf("compound", {})).to.equal(undefined);
    expect(valuesOf("none", { tenant: "t1" })).to.equal(undefined);
  });
});
