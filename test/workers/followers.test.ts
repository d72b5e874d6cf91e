import { expect } from "chai";
import { followJob } from "../../src/jobs/follow.ts";
import { makeFollowTenant } from "../../src/jobs/follow-tenant.ts";
import type { JobEvent } from "../../src/jobs/job-view.ts";
import { shareReads } from "../../src/lib/share-reads.ts";
import { startWorkers } from "../../workers/start-workers.ts";
import { makeClient, valueAt } from "../support/http-client.ts";
import { makeScriptedJobs } from "../support/scripted-queue.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const FOLLOWERS = 20;
/** Least time for which the changes for so many are gathered, in ms; those for a few in less than half of it. */
const MANY_GATHER_MS = 600;

/** What the next batch of a follower says. */
async function shownNext(events: ReturnType<typeof followJob>): Promise<unknown[]> {
  const { value } = await events.next();
  return (value ?? []).map(({ data }: JobEvent) => data);
}

/** No worker runs here: the test changes the job, and counts what its followers read. */
describe("followers of jobs", () => {
  let test: TestPlatform;
  let tenantId: string;
  let jobId: string;
  before(async () => {
    test = await startPlatform({ workers: false });
    tenantId = await tenantOf(test);
  });
  beforeEach(async () => {
    const client = makeClient({ url: test.url, key: test.keys.member });
    const content = `Line of ${performance.now()}.`;
    const accepted = await client.post("/rag/ingest", { content }, { headers: { prefer: "respond-async" } });
    jobId = accepted.string("jobId");
  });
  after(() => test.close());

  const change = async (n: number) => {
    const { store, jobs } = test.platform;
    await store.jobs.addStep({ jobId, from: ["queued"] }, { n });
    jobs.notifications.changed({ tenantId, _id: jobId });
  };

  it("share the reads of a job", async () => {
    const { store, jobs } = test.platform;
    let reads = 0;
    const read = shareReads((...given: [string, string]) => {
      reads += 1;
      return store.jobs.find(...given);
    });
    const leave = new AbortController();
    const { signal } = leave;
    const follow = () => followJob({ read, notifications: jobs.notifications }, tenantId, jobId, { signal });
    const followers = Array.from({ length: FOLLOWERS }, follow);
    const next = () => Promise.all(followers.map(shownNext));
    await change(1);
    expect(await next()).to.deep.equal(followers.map(() => [{ n: 1 }]));
    const second = next();
    await change(2);
    expect(await second).to.deep.equal(followers.map(() => [{ n: 2 }]));
    expect(reads).to.be.below(FOLLOWERS);
    leave.abort();
  });

  it("get what comes within a moment as one batch", async () => {
    const { store, jobs } = test.platform;
    const leave = new AbortController();
    const deps = { read: store.jobs.find, notifications: jobs.notifications };
    await change(1);
    const events = followJob(deps, tenantId, jobId, { everyMs: 400, signal: leave.signal });
    expect(await shownNext(events)).to.deep.equal([{ n: 1 }]);
    const second = shownNext(events);
    for (const n of [2, 3, 4]) {
      await change(n);
      await store.jobs.find(tenantId, jobId); // time in which a follower without a pause would read
    }
    expect(await second).to.deep.equal([{ n: 2 }, { n: 3 }, { n: 4 }]);
    leave.abort();
  });

  it("of a tenant share one gathering, and one that is late gets a part", async () => {
    const { store, jobs } = test.platform;
    let reads = 0;
    const summaries: typeof store.jobs.summaries = (...given) => {
      reads += 1;
      return store.jobs.summaries(...given);
    };
    const followTenant = makeFollowTenant({ store: { summaries }, notifications: jobs.notifications });
    const leave = new AbortController();
    const followers = Array.from({ length: FOLLOWERS }, () => followTenant(tenantId, leave.signal));
    const next = (some: typeof followers) => Promise.all(some.map((changes) => changes.next()));
    const idsAndParts = (got: Awaited<ReturnType<typeof next>>) =>
      got.map(({ value }) => [value?.jobs.map(({ _id }: { _id: string }) => _id), value?.isPartial]);
    // Again and again: the first change may come before the subscription.
    const until = async <T>(asked: Promise<T>): Promise<T> => {
      const changing = setInterval(() => jobs.notifications.changed({ tenantId, _id: jobId }), 20);
      return asked.finally(() => clearInterval(changing));
    };
    const all = idsAndParts(await until(next(followers)));
    expect(all).to.deep.equal(followers.map(() => [[jobId], false]));
    expect(reads).to.equal(1);
    const asked = performance.now();
    await until(next(followers));
    expect(performance.now() - asked, "ms for twenty followers, which are many").to.be.at.least(MANY_GATHER_MS);
    const [late, ...quick] = followers;
    for (let turn = 0; turn < 2; turn += 1) await until(next(quick));
    expect(idsAndParts(await next(late ? [late] : []))).to.deep.equal([[[jobId], true]]);
    leave.abort();
    expect((await next(followers)).every(({ done }) => done)).to.equal(true);
  });
});

describe("followers of a job that waits for its worker", function () {
  this.timeout(30_000);
  const scripted = makeScriptedJobs();
  let test: TestPlatform;
  before(async () => {
    test = await startPlatform({ workers: false, extra: [scripted.work] });
  });
  after(() => test.close());

  it("see that it runs before it reports anything", async () => {
    const client = makeClient({ url: test.url, key: test.keys.member });
    const mayEnd = Promise.withResolvers<void>();
    const { _id: jobId } = await scripted.submit(test.platform, await tenantOf(test), async () => {
      await mayEnd.promise;
      return {};
    });
    const leave = new AbortController();
    const { signal } = leave;
    const [one, all] = await Promise.all([
      client.events("GET", `/jobs/${jobId}/events`, { signal }),
      client.events("GET", "/jobs/events", { signal }),
    ]);
    /** The state in the next event, and the number of that event. */
    const next = async ({ events }: typeof one) => {
      const { value } = await events.next();
      return { status: valueAt(value?.data, "status"), id: Number(value?.id) };
    };
    const seen = [await next(one)];
    expect(seen[0]?.status).to.equal("queued");
    const workers = await startWorkers(test.platform, {
      extra: [scripted.work],
      queues: ["scripted"],
      concurrencyFactor: 1,
      shutdownGraceMs: 0,
    });
    try {
      seen.push(await next(one));
      expect([seen[1]?.status, (await next(all)).status]).to.deep.equal(["running", "running"]);
      mayEnd.resolve();
      while (seen.at(-1)?.status !== "completed") seen.push(await next(one));
    } finally {
      leave.abort();
      await workers.close();
    }
    const ids = seen.map(({ id }) => id);
    expect(ids, "each event once, in order").to.deep.equal([...new Set(ids)].sort((a, b) => a - b));
  });
});
