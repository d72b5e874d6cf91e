import { expect } from "chai";
import { makeClaims } from "../../src/jobs/claim.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

describe("the records of jobs", () => {
  let test: TestPlatform;
  let client: ApiClient;
  before(async () => {
    test = await startPlatform({ workers: false });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  after(() => test.close());

  const submit = async (content: string) => {
    const accepted = await client.post("/rag/ingest", { content }, { headers: { prefer: "respond-async" } });
    return accepted.string("jobId");
  };
  const recordOf = async (jobId: string) => {
    const record = await test.platform.store.jobs.findById(jobId);
    return record ?? expect.fail(`there is no record of ${jobId}`);
  };
  const claim = async (jobId: string) => {
    const { store } = test.platform;
    const claims = makeClaims(store.jobs, 60_000);
    const claimed = await claims.claim(jobId, "the worker of this test");
    return claimed ? { claims, ...claimed } : expect.fail(`${jobId} was not to be had`);
  };

  it("are claimed by their id, however many others wait", async () => {
    const [first, second] = [await submit("One."), await submit("Two.")];
    expect((await claim(second)).record._id).to.equal(second);
    expect((await recordOf(first)).status).to.equal("queued");
    const { store } = test.platform;
    expect(await makeClaims(store.jobs, 60_000).claim(second, "another"), "while its lease lasts").to.equal(null);
  });

  it("await something only after they were suspended", async () => {
    const { jobs } = test.platform.store;
    const ids = [await submit("Waits for a worker."), await submit("Waits for a person.")];
    const { claims, lease } = await claim(ids[1] ?? "");
    expect(await jobs.findAwaiting(ids)).to.deep.equal(new Set());
    await claims.suspend(lease);
    expect(await jobs.findAwaiting(ids)).to.deep.equal(new Set([ids[1]]));
  });

  it("are refused while they are as they were submitted, and not once a worker has them", async () => {
    const { jobs } = test.platform.store;
    const [waiting, taken] = [await recordOf(await submit("Refused.")), await recordOf(await submit("Taken."))];
    await claim(taken._id);
    const refused = (record: typeof waiting) => ({ ...record, status: "failed" as const, finishedAt: new Date() });
    expect(await jobs.refuse(refused(waiting), "queued")).to.equal(true);
    expect((await recordOf(waiting._id)).status).to.equal("failed");
    expect(await jobs.refuse(refused(waiting), "queued"), "once more").to.equal(true);
    expect(await jobs.refuse(refused(taken), "queued")).to.equal(false);
    expect((await recordOf(taken._id)).status).to.equal("running");
  });

  it("number their steps from one, and keep the newest", async () => {
    const { claims, lease, record } = await claim(await submit("Followed."));
    const from = record.lastEventId;
    const numbers = Array.from({ length: 203 }, (_, n) => n);
    for (const n of numbers) await claims.step(lease, { n });
    const { steps, lastEventId } = await recordOf(record._id);
    expect(lastEventId).to.equal(from + 203);
    expect(steps).to.deep.equal(numbers.slice(3).map((n) => ({ id: from + n + 1, data: { n } })));
  });

  it("give each event a number of its own, also when several come at once", async () => {
    const { claims, lease, record } = await claim(await submit("Busy."));
    const numbers = Array.from({ length: 12 }, (_, n) => n);
    const progress = (n: number) => claims.progress(lease, { stage: "running", done: n, total: 12 });
    // Each has seen the same last event, as it is known to a worker that adds several at once.
    await Promise.all(numbers.flatMap((n) => [claims.step(lease, { n }, n % 2 ? 0 : undefined), progress(n)]));
    const { steps = [], lastEventId } = await recordOf(record._id);
    expect(lastEventId).to.equal(record.lastEventId + 24);
    expect(steps.map(({ data }) => data.n).sort((a, b) => Number(a) - Number(b))).to.deep.equal(numbers);
    const ids = steps.map(({ id }) => id);
    expect(ids, "in order, none twice").to.deep.equal([...new Set(ids)].sort((a, b) => a - b));
    expect(await claims.step({ ...lease, token: "another" }, { n: 99 }), "without the lease").to.equal(null);
  });

  it("show their states to their tenant alone", async () => {
    const { jobs } = test.platform.store;
    const ids = [await submit("Waits."), await submit("Runs.")];
    await claim(ids[1] ?? "");
    const many = [...ids, ...Array.from({ length: 1_000 }, (_, n) => `job_none_${n}`)].reverse();
    const states = await jobs.statesOf(await tenantOf(test), many);
    expect([...states].sort()).to.deep.equal(
      [
        [ids[0], "queued"],
        [ids[1], "running"],
      ].sort(),
    );
    expect(await jobs.statesOf("ten_another", ids)).to.deep.equal(new Map());
  });
});
