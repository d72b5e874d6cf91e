import { mock } from "node:test";
import { expect } from "chai";
import type { Enqueued } from "../../src/jobs/queue-client.ts";
import { reconcileJobs } from "../../src/jobs/reconcile.ts";
import type { JobRecord } from "../../src/store/job-record.ts";
import { type JobStore, makeJobStore } from "../../src/store/job-store.ts";
import { makeJob } from "../support/make-job.ts";
import { useStore } from "../support/use-store.ts";

const now = Date.parse("2040-01-01T00:00:00Z");
const at = (ms: number) => new Date(now + ms);
const lease = { workerId: "a worker", token: "held", expiresAt: at(0) };

/** A Redis that holds these jobs; what is asked of it beyond that is noted. */
function makeQueues(held: readonly JobRecord[]) {
  const live = new Map(held.map(({ _id, queue }) => [_id, queue]));
  const calls: ["remove" | "add", queue: string, job: Enqueued | string][] = [];
  return {
    calls,
    findLive: async (queue: string, jobIds: readonly string[]) =>
      new Set(jobIds.filter((jobId) => live.get(jobId) === queue)),
    remove: async (queue: string, jobId: string) => void calls.push(["remove", queue, jobId]),
    add: async (queue: string, job: Enqueued) => void calls.push(["add", queue, job]),
  };
}

describe("the search for jobs that may be lost", () => {
  const open = useStore();
  let store: JobStore;
  before(() => {
    store = makeJobStore(open());
  });
  beforeEach(() => mock.timers.enable({ apis: ["Date"], now }));
  afterEach(() => mock.timers.reset());

  const insert = async (fields: Partial<JobRecord>) => {
    const record = makeJob({ checkAt: at(0), payload: { v: 1 }, priority: 7, ...fields });
    await store.insert(record);
    return record;
  };

  it("re-enqueues jobs that Redis has lost, takes back those with an expired lease, and leaves the others", async () => {
    const queued = await insert({});
    const retried = await insert({ queue: "agent-runs", notBefore: at(5_000) });
    const silent = await insert({ status: "running", lease });
    const [inRedis, running] = [await insert({}), await insert({ status: "running", lease })];
    const renewed = await insert({ status: "running", lease: { ...lease, token: "another" } });
    const soon = await insert({ checkAt: at(1) });
    const queues = makeQueues([inRedis, running]);
    const findDue: JobStore["findDue"] = async (...query) => {
      const due = await store.findDue(...query);
      return due.map((record) => (record._id === renewed._id ? { ...record, lease } : record)); // as it was before
    };

    expect(await reconcileJobs({ store: { ...store, findDue }, queues })).to.deep.equal({ requeued: 3, expired: 1 });
    const again = ({ _id: jobId, queue }: JobRecord, more = {}) => [
      ["remove", queue, jobId],
      ["add", queue, { jobId, payload: { v: 1 }, priority: 7, ...more }],
    ];
    const [ofIngestion, ofAgents] = [again(queued).concat(again(silent)), again(retried, { notBefore: at(5_000) })];
    expect(queues.calls.filter(([, queue]) => queue === "ingestion")).to.deep.equal(ofIngestion);
    expect(queues.calls.filter(([, queue]) => queue === "agent-runs")).to.deep.equal(ofAgents);

    const { lease: _silent, ...waiting } = silent;
    const expected = [queued, retried, inRedis, running, renewed, { ...waiting, status: "queued", updatedAt: at(0) }];
    for (const record of expected)
      expect(await store.findById(record._id)).to.deep.equal({ ...record, checkAt: at(10_000) });
    expect(await store.findById(soon._id), "not due").to.deep.equal(soon);
  });

  for (const { title, due, live, looks } of [
    { title: "ends when fewer than 500 are due", due: 499, live: false, looks: 1 },
    { title: "looks at 2,000 when none of them is lost", due: 500, live: true, looks: 4 },
    { title: "looks at 50,000 while they are lost", due: 500, live: false, looks: 100 },
  ]) {
    it(title, async () => {
      const records = Array.from({ length: due }, () => makeJob());
      const asked: unknown[] = [];
      const found = {
        findDue: async (...query: unknown[]) => {
          expect(asked.push(query), "looks").to.be.at.most(looks);
          return records;
        },
        change: async () => null,
        rescheduleCheck: async () => undefined,
      };
      const queues = makeQueues(live ? records : []);
      const requeued = live ? 0 : due * looks;
      expect(await reconcileJobs({ store: found, queues })).to.deep.equal({ requeued, expired: 0 });
      expect(asked).to.deep.equal(Array.from({ length: looks }, () => [at(0), 500]));
    });
  }
});
