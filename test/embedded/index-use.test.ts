import { expect } from "chai";
import type { Collection, Db, Document, FindCursor } from "mongodb";
import { jobCollection } from "../../src/store/job-store.ts";
import { withFreshServer } from "./support.ts";

type Thing = Document & { _id: number };
type Plan = Document & { stage: string; inputStage?: Plan; inputStages?: Plan[] };

async function planOf(
  cursor: FindCursor,
): Promise<{ plan: Plan; stages: string[]; examined: number; returned: number }> {
  const { queryPlanner, executionStats } = await cursor.explain("executionStats");
  const stages: string[] = [];
  const visit = (plan: Plan) => {
    stages.push(plan.stage);
    for (const inner of [plan.inputStage, ...(plan.inputStages ?? [])]) if (inner) visit(inner);
  };
  visit(queryPlanner.winningPlan);
  return {
    plan: queryPlanner.winningPlan,
    stages,
    examined: executionStats.totalDocsExamined,
    returned: executionStats.nReturned,
  };
}

const documents = Array.from({ length: 500 }, (_, n) => ({
  _id: n,
  tenant: `t${n % 10}`,
  state: n % 3 === 0 ? "open" : "done",
  at: new Date(1_700_000_000_000 + n * 1000),
  tags: [`a${n % 7}`, `b${n % 5}`],
  ...(n % 50 === 0 ? { rare: n } : {}),
}));

function withDocuments(work: (things: Collection<Thing>, db: Db) => Promise<void>): Promise<void> {
  return withFreshServer(async (db) => {
    const things = db.collection<Thing>("things");
    await things.insertMany(documents);
    await work(things, db);
  });
}

describe("embedded store: use of indexes", () => {
  it("without an index reads every document", () =>
    withDocuments(async (things) => {
      const { stages, examined } = await planOf(things.find({ tenant: "t1" }));
      expect(stages).to.deep.equal(["COLLSCAN"]);
      expect(examined).to.equal(500);
    }));

  it("finds by _id without an index of its own", () =>
    withDocuments(async (things) => {
      const { stages, examined } = await planOf(things.find({ _id: 7 }));
      expect(stages).to.include("IXSCAN");
      expect(examined).to.equal(1);
    }));

  it("serves equality, range and order of one compound index, reading no more than it returns", () =>
    withDocuments(async (things) => {
      await things.createIndex({ tenant: 1, state: 1, at: -1 });
      const filter = { tenant: "t3", state: "open", at: { $gt: new Date(1_700_000_100_000) } };
      const { stages, examined, returned } = await planOf(things.find(filter).sort({ at: -1 }));
      expect(stages).to.deep.equal(["FETCH", "IXSCAN"]);
      expect(examined).to.equal(returned);
      const found = await things.find(filter).sort({ at: -1 }).toArray();
      const times = found.map(({ at }) => Number(at));
      expect(times).to.deep.equal([...times].sort((a, b) => b - a));
      expect(found.length).to.equal(returned).and.to.be.greaterThan(5);
    }));

  it("finds the oldest job that waits on a queue without reading others", () =>
    withFreshServer(async (db) => {
      const jobs = db.collection<Document & { _id: string }>(jobCollection.name);
      await jobs.createIndexes([...jobCollection.indexes]);
      const statuses = ["completed", "completed", "running", "queued"];
      await jobs.insertMany(
        Array.from({ length: 400 }, (_, n) => ({
          _id: `job_${1_000 + n}`,
          queue: n % 2 === 0 ? "even" : "odd",
          status: statuses[n % 4] ?? "",
          tenantId: `t${n % 5}`,
        })),
      );
      const waiting = { queue: "odd", status: "queued", notBefore: { $not: { $gt: new Date() } } };
      const { stages, examined } = await planOf(jobs.find(waiting).sort({ _id: 1 }).limit(1));
      expect(stages).to.deep.equal(["LIMIT", "FETCH", "IXSCAN"]);
      expect(examined).to.equal(1);
    }));

  it("reads only as many documents of a sorted index as the limit asks for", () =>
    withDocuments(async (things) => {
      await things.createIndex({ tenant: 1, at: 1 });
      const { plan, examined } = await planOf(things.find({ tenant: "t3" }).sort({ at: -1 }).limit(5));
      expect(plan.stage).to.equal("LIMIT");
      expect(plan.inputStage?.inputStage).to.include({ stage: "IXSCAN", direction: "backward" });
      expect(examined).to.equal(5);
    }));

  it("sorts in memory when the index has another order", () =>
    withDocuments(async (things) => {
      await things.createIndex({ tenant: 1, at: 1 });
      const { stages } = await planOf(things.find({ tenant: "t3" }).sort({ state: 1, at: 1 }));
      expect(stages).to.deep.equal(["SORT", "FETCH", "IXSCAN"]);
    }));

  it("serves $in by one range a value", () =>
    withDocuments(async (things) => {
      await things.createIndex({ tenant: 1 });
      const some = await planOf(things.find({ tenant: { $in: ["t1", "t2", "none"] } }));
      expect(some.examined).to.equal(100);
    }));

  it("finds a document once by several elements of an array", () =>
    withDocuments(async (things) => {
      await things.createIndex({ tags: 1 });
      const { stages } = await planOf(things.find({ tags: { $in: ["a1", "b1"] } }));
      expect(stages).to.include("IXSCAN");
      const found = await things.find({ tags: { $in: ["a1", "b1"] } }).toArray();
      expect(new Set(found.map(({ _id }) => _id)).size).to.equal(found.length);
      expect(found.length).to.equal(documents.filter(({ tags }) => tags.includes("a1") || tags.includes("b1")).length);
    }));

  it("uses a sparse index only where a document without the field cannot match", () =>
    withDocuments(async (things) => {
      await things.createIndex({ rare: 1 }, { sparse: true });
      expect((await planOf(things.find({ rare: { $gte: 0 } }))).examined).to.equal(10);
      expect((await planOf(things.find({ rare: null }))).stages).to.deep.equal(["COLLSCAN"]);
      expect((await planOf(things.find({}).sort({ rare: 1 }))).stages).to.deep.equal(["SORT", "COLLSCAN"]);
      expect(await things.countDocuments({ rare: null })).to.equal(490);
    }));

  it("uses a partial index only for queries that stay inside it", () =>
    withDocuments(async (things) => {
      await things.createIndex({ at: 1 }, { partialFilterExpression: { state: "open" } });
      const inside = await planOf(things.find({ state: "open", at: { $lt: new Date(1_700_000_060_000) } }));
      expect(inside.stages).to.include("IXSCAN");
      expect(inside.examined).to.equal(20);
      expect((await planOf(things.find({ at: { $lt: new Date(1_700_000_060_000) } }))).stages).to.deep.equal([
        "COLLSCAN",
      ]);
    }));

  it("serves an aggregation's first $match and $sort", () =>
    withDocuments(async (things, db) => {
      await things.createIndex({ tenant: 1, at: 1 });
      const pipeline = [{ $match: { tenant: "t4" } }, { $sort: { at: 1 } }, { $limit: 3 }, { $project: { at: 1 } }];
      const command = { explain: { aggregate: "things", pipeline, cursor: {} }, verbosity: "queryPlanner" };
      const { queryPlanner } = await db.command(command);
      expect(queryPlanner.winningPlan.inputStage.inputStage).to.include({ stage: "IXSCAN" });
      expect(await things.aggregate(pipeline).toArray()).to.have.length(3);
    }));
});
