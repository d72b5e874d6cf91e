import { expect } from "chai";
import type { JobRecord } from "../../src/store/job-record.ts";
import { startWorkers } from "../../workers/start-workers.ts";
import { pollUntil } from "../support/poll-until.ts";
import { makeScriptedJobs, scriptedQueue } from "../support/scripted-queue.ts";
import { keysOf } from "../support/secret-scan.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

/** Empties the platform's Redis; of one that was given, which others use, its part alone. */
async function empty({ platform }: TestPlatform): Promise<void> {
  const { redis } = platform;
  if (!process.env.REDIS_URL) return void (await redis.producer.flushall());
  for await (const keys of keysOf(redis.producer, redis.prefix)) {
    if (keys.length > 0) await redis.producer.unlink(keys);
  }
}

describe("when Redis loses everything", function () {
  this.timeout(60_000);
  const jobs = makeScriptedJobs();
  let test: TestPlatform;
  let tenantId: string;

  before(async () => {
    test = await startPlatform({
      services: "private",
      extra: [jobs.work],
      workers: false,
      env: { RECONCILE_EVERY_MS: "300" },
    });
    tenantId = await test.platform.tenancy.ensureTenant("first");
  });
  after(() => test.close());

  it("ends all of 100 accepted jobs, each run once", async () => {
    const runs = new Map<string, number>();
    const accepted: JobRecord[] = [];
    for (let index = 0; index < 100; index += 1) {
      const job = await jobs.submit(test.platform, tenantId, async ({ jobId }) => {
        runs.set(jobId, (runs.get(jobId) ?? 0) + 1);
        return { index };
      });
      accepted.push(job);
    }
    const { store, queues } = test.platform;
    await empty(test);
    const ids = accepted.map((job) => job._id);
    expect((await queues.findLive(scriptedQueue.name, ids)).size, "BullMQ jobs after the loss").to.equal(0);
    const workers = await startWorkers(test.platform, {
      extra: [jobs.work],
      concurrencyFactor: 1,
      shutdownGraceMs: 1_000,
    });
    try {
      await pollUntil(async () => (await store.jobs.countOpen(tenantId, 1_000)) === 0, {
        timeoutMs: 40_000,
        everyMs: 100,
        what: "the end of all jobs",
      });
      const ended = await Promise.all(ids.map((jobId) => test.platform.jobs.get(tenantId, jobId)));
      expect(ended.map((job) => job.status)).to.deep.equal(ids.map(() => "completed"));
      expect(ended.map((job) => job.result)).to.deep.equal(ids.map((_, index) => ({ index })));
      expect([...runs.values()]).to.deep.equal(ids.map(() => 1));
    } finally {
      await workers.close();
    }
  });

  it("refuses a job with 503 while Redis is unavailable, and never runs it later", async () => {
    const { producer } = test.platform.redis;
    const before = await test.platform.jobs.list(tenantId, { limit: 1 });
    producer.disconnect();
    const refused = await jobs
      .submit(test.platform, tenantId, async () => "must not run")
      .catch((error: unknown) => error);
    expect(refused).to.have.property("code", "unavailable");
    if (producer.status === "end") await producer.connect(); // unless somebody who needed it has done so
    await pollUntil(() => producer.status === "ready", { what: "the connection" });
    const { data } = await test.platform.jobs.list(tenantId, { limit: 1 });
    expect(data[0]?._id).to.equal(before.data[0]?._id);
    expect((await test.platform.jobs.reconcile()).requeued).to.equal(0);
  });
});
