import { expect } from "chai";
import type { Db } from "mongodb";
import { makeClaims } from "../../src/jobs/claim.ts";
import type { JobRecord } from "../../src/store/job-record.ts";
import { type JobStore, makeJobStore } from "../../src/store/job-store.ts";
import { NO_TENANT } from "../../src/store/refused-jobs.ts";
import { makeJob } from "../support/make-job.ts";
import { useStore } from "../support/use-store.ts";

const now = Date.now();
const at = (ms: number) => new Date(now + ms);
const idsOf = (records: readonly { _id: string }[]) => records.map(({ _id }) => _id);

describe("the records of jobs", () => {
  const open = useStore();
  let jobs: JobStore;
  before(() => {
    jobs = makeJobStore(open());
  });

  const insert = async (fields: Partial<JobRecord> = {}) => {
    const record = makeJob(fields);
    await jobs.insert(record);
    return record;
  };
  const claim = async (jobId: string) => {
    const claims = makeClaims(jobs, 60_000);
    const claimed = await claims.claim(jobId, "the worker of this test");
    return claimed ? { claims, ...claimed } : expect.fail(`${jobId} was not to be had`);
  };

  it("are each accepted or refused by itself when many come at once", async () => {
    const there = await insert();
    const taken = { ...makeJob({ createdAt: at(1) }), _id: there._id };
    const [before, after] = [makeJob(), makeJob()];
    const outcomes = await Promise.allSettled([before, taken, after].map((record) => jobs.insert(record)));
    expect(outcomes.map(({ status }) => status)).to.deep.equal(["fulfilled", "rejected", "fulfilled"]);
    expect(outcomes[1]).to.have.nested.property("reason.code", 11_000);
    const kept = await Promise.all([before, there, after].map(({ _id }) => jobs.findById(_id)));
    expect(kept).to.deep.equal([before, there, after]);
  });

  it("await something only after they were suspended", async () => {
    const ids = [(await insert())._id, (await insert())._id];
    const other = await claim((await insert())._id);
    await other.claims.suspend(other.lease);
    const { claims, lease } = await claim(ids[1] ?? "");
    expect(await jobs.findAwaiting(ids)).to.deep.equal(new Set());
    await claims.suspend(lease);
    expect(await jobs.findAwaiting(ids)).to.deep.equal(new Set([ids[1]]));
  });

  it("are refused while they are as they were submitted, and not once a worker has them", async () => {
    const { checkAt: _until, ...refused } = makeJob({ status: "failed", checkAt: at(0), finishedAt: at(0) });
    const as = ({ _id }: JobRecord) => ({ ...refused, _id });
    const [waiting, taken] = [await insert({ checkAt: at(0) }), await insert()];
    await claim(taken._id);
    const [failed, suspended] = [await claim((await insert())._id), await claim((await insert())._id)];
    await failed.claims.fail(failed.lease, { type: "server_error", code: "internal", message: "It is over." });
    await suspended.claims.suspend(suspended.lease);
    expect(await jobs.reject({ ...as(waiting), checkAt: at(0) }, "queued")).to.equal(true);
    expect(await jobs.findById(waiting._id)).to.deep.equal(as(waiting));
    expect(await jobs.reject(as(waiting), "queued"), "once more").to.equal(true);
    for (const begun of [taken, failed.record, suspended.record]) {
      const before = await jobs.findById(begun._id);
      expect(await jobs.reject(as(begun), "queued")).to.equal(false);
      expect(await jobs.findById(begun._id)).to.deep.equal(before);
    }
    expect(await jobs.reject(refused, "queued"), "of which the store has nothing").to.equal(true);
    expect(await jobs.findById(refused._id)).to.deep.equal(refused);
  });

  it("are told to no parent and to no webhook once they were refused", async () => {
    const child = await insert({ parentJobId: makeJob()._id, unsettledSince: at(-60_000), isAnnounced: true });
    expect(await jobs.reject({ ...child, status: "failed", tenantId: NO_TENANT }, "queued")).to.equal(true);
    const found = [...(await jobs.kin.unsettled(at(0), 100)), ...(await jobs.announced(100))];
    expect(idsOf(found)).not.to.include(child._id);
  });

  it("are not refused by a write that the store rejects", async () => {
    const job = await insert();
    const tooLarge = { ...job, status: "failed" as const, result: "x".repeat(17 << 20) };
    expect(await jobs.reject(tooLarge, "queued").catch((error: unknown) => error)).to.be.instanceOf(Error);
  });

  it("number their steps one by one, and keep the newest 200", async () => {
    const kept = Array.from({ length: 199 }, (_, n) => ({ id: n + 1, data: { n } }));
    const { claims, lease, record } = await claim((await insert({ lastEventId: 199, steps: kept }))._id);
    const added = [201, 202].map((id) => ({ id, data: { n: id } })); // its claim is event 200
    for (const { data } of added) await claims.step(lease, data);
    const { steps, lastEventId } = (await jobs.findById(record._id)) ?? expect.fail("it is gone");
    expect([lastEventId, steps]).to.deep.equal([202, [...kept, ...added].slice(1)]);
  });

  it("give each event a number of its own, also when several come at once", async () => {
    const { claims, lease, record } = await claim((await insert())._id);
    const numbers = Array.from({ length: 6 }, (_, n) => n);
    const progress = (n: number) => claims.progress(lease, { stage: "running", done: n, total: 6 });
    // Each has seen the same last event, as it is known to a worker that adds several at once.
    const seen = record.lastEventId;
    await Promise.all(
      numbers.flatMap((n) => [claims.step(lease, { n }, { lastEventId: n % 2 ? seen : undefined }), progress(n)]),
    );
    const { steps = [], lastEventId } = (await jobs.findById(record._id)) ?? expect.fail("it is gone");
    expect(lastEventId).to.equal(seen + 12);
    expect(steps.map(({ data }) => data.n).sort((a, b) => Number(a) - Number(b))).to.deep.equal(numbers);
    const ids = steps.map(({ id }) => id);
    expect(ids, "in order, none twice").to.deep.equal([...new Set(ids)].sort((a, b) => a - b));
    const without = { ...lease, token: "another" };
    expect(await claims.step(without, { n: 99 }), "without the lease").to.equal(null);
    expect(await claims.step(without, { n: 99 }, { lastEventId }), "with the right number too").to.equal(null);
  });

  it("give up a step after a hundred conflicts with other events", async () => {
    const { lease } = await claim((await insert())._id);
    let turns = 0;
    const findOneAndUpdate = async () => {
      turns += 1;
      expect(turns).to.be.at.most(100);
      return null;
    };
    const taken: Pick<Db, "collection"> = {
      collection: (name: string) =>
        new Proxy(open().collection(name), {
          get: (records, key) => (key === "findOneAndUpdate" ? findOneAndUpdate : Reflect.get(records, key)),
        }) as never, // a collection in which nothing is found any more once it is to be changed
    };
    const guard = { jobId: lease.jobId, from: ["running"] as const };
    const error = await makeJobStore(taken as Db)
      .addStep(guard, {})
      .catch((caught: unknown) => caught);
    expect(error).to.include({ code: "unavailable" });
    expect(turns).to.equal(100);
  });

  it("show themselves and their states to their tenant alone", async () => {
    const first = await insert();
    const ids = [first._id, (await insert())._id];
    expect(await jobs.find("ten_jobs", first._id)).to.deep.equal(first);
    expect(await jobs.find("ten_another", first._id)).to.equal(null);
    await claim(ids[1] ?? "");
    const many = [...ids, ...Array.from({ length: 1_000 }, (_, n) => `job_none_${n}`)].reverse();
    const states = await jobs.statesOf("ten_jobs", many);
    expect([...states].sort()).to.deep.equal(
      [
        [ids[0], "queued"],
        [ids[1], "running"],
      ].sort(),
    );
    expect(await jobs.statesOf("ten_another", ids)).to.deep.equal(new Map());
  });

  it("are listed by kind and state, with all that a list shows and nothing else", async () => {
    const tenantId = "ten_lists";
    const shown = {
      _id: "job_2",
      kind: "agent" as const,
      subject: { runId: "run_1" },
      title: "Walrus",
      startedBy: "ana@test",
      status: "failed" as const,
      progress: { stage: "searching", done: 1, total: 2 },
      attempts: 3,
      createdAt: at(0),
      startedAt: at(1),
      finishedAt: at(2),
      error: { type: "server_error" as const, code: "internal" as const, message: "It is over." },
    };
    await insert({ ...shown, tenantId, result: "large", steps: [{ id: 1, data: {} }] });
    for (const other of [{ kind: "ingestion" as const }, { status: "completed" as const }, { tenantId: "ten_other" }])
      await insert({ kind: "agent", status: "failed", tenantId, ...other, _id: `job_1${JSON.stringify(other)}` });
    const list = async (query: Partial<Parameters<JobStore["list"]>[1]>) =>
      (await jobs.list(tenantId, { limit: 10, ...query })).data;
    expect(await list({ kind: "agent", status: "failed" })).to.deep.equal([shown]);
    expect(
      [await list({ kind: "agent" }), await list({ status: "failed" }), await list({})].map(({ length }) => length),
    ).to.deep.equal([2, 2, 3]);
    expect(idsOf(await list({ limit: 1 }))).to.deep.equal(["job_2"]);
    expect(await list({ cursor: "job_2" })).to.have.lengthOf(2);
  });

  it("are due at their time, the most overdue first, until they were looked at", async () => {
    const [second, first, later] = [at(0), at(-1), at(1)].map((checkAt) => makeJob({ checkAt }));
    const ended = makeJob();
    if (!second || !first || !later) throw new Error("unreachable");
    for (const record of [second, first, later, ended]) await jobs.insert(record);
    const due = async (ms: number, limit = 10) => idsOf(await jobs.findDue(at(ms), limit));
    expect(await due(0)).to.deep.equal(idsOf([first, second]));
    expect(await due(0, 1)).to.deep.equal(idsOf([first]));
    await jobs.rescheduleCheck(idsOf([first, ended]), at(2));
    expect(await due(2)).to.deep.equal(idsOf([second, later, first]));
    expect(await jobs.findById(ended._id), "an ended one is never due").to.deep.equal(ended);
  });

  it("are counted by tenant and queue while they wait, and while they are open", async () => {
    const [tenantId, queue] = ["ten_counts", "counted"];
    const states = ["queued", "queued", "running", "awaiting", "completed", "failed", "cancelled"] as const;
    for (const status of states) await insert({ tenantId, queue, status });
    for (const other of [{ tenantId: "ten_other" }, { queue: "other" }]) await insert({ tenantId, queue, ...other });
    expect(await jobs.countQueued(tenantId, queue, 10)).to.equal(2);
    expect(await jobs.countQueued(tenantId, queue, 1), "no further").to.equal(1);
    expect(await jobs.countOpen(tenantId, 10), "of all queues").to.equal(5);
    expect(await jobs.countOpen(tenantId, 3), "no further").to.equal(3);
  });

  it("report since when the oldest runnable job of a queue waits", async () => {
    const queue = "aged";
    const oldest = () => jobs.findOldestQueued(queue, at(0));
    expect(await oldest()).to.equal(null);
    await insert({ _id: "job_a1", queue: "another", createdAt: at(-9) });
    await insert({ _id: "job_a2", queue, status: "running", createdAt: at(-8) });
    await insert({ _id: "job_a3", queue, createdAt: at(-7), notBefore: at(1) });
    expect(await oldest(), "none could run").to.equal(null);
    await insert({ _id: "job_a5", queue, createdAt: at(-5) });
    expect(await oldest()).to.deep.equal(at(-5));
    await insert({ _id: "job_a4", queue, createdAt: at(-6), notBefore: at(0) });
    expect(await oldest(), "not since before it could").to.deep.equal(at(0));
  });
});
