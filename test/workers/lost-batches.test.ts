import { expect } from "chai";
import { sweepWorks } from "../../src/jobs/work.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

/** Under which the service keeps the jobs of batches. */
const serviceTenantId = `ten_${"0".repeat(26)}`;

/** No worker runs: how far a batch came before its job failed is made by hand, and the sweep is asked to look at once. */
describe("a batch at a provider whose job failed for good", () => {
  let test: TestPlatform;
  let member: ApiClient;
  before(async () => {
    const env = { OPENAI_API_KEY: "sk-platform-0123456789abcdef", BATCH_COLLECT_MS: "20" };
    test = await startPlatform({ workers: false, env });
    member = makeClient({ url: test.url, key: test.keys.member });
  });
  after(() => test.close());

  /** A chat in a batch that is closed and has its job. */
  const closedBatch = async () => {
    const { batches } = test.platform.store;
    const messages = [{ role: "user", content: "What is a lease?" }];
    const accepted = await member.post("/ai/chat", { model: "gpt-5.4-nano", prefer_async: true, messages });
    expect(accepted.status).to.equal(202);
    const batch = await pollUntil(async () => (await batches.overdue(["closed"], new Date(), 1))[0], {
      what: "the batch",
    });
    const { jobs } = test.platform;
    await pollUntil(() => jobs.find(serviceTenantId, batch.jobId), { what: "its job" });
    expect(await batches.fill(batch, { items: 10, characters: 1_000_000 })).to.equal(1);
    expect(await batches.markSubmitting(batch, 1)).to.equal(true);
    return { batch, path: accepted.string("statusUrl") };
  };
  const failJob = async (jobId: string) => {
    const { claims } = test.platform.jobs;
    const claimed = await claims.claim(jobId, "a worker that gives up");
    if (!claimed) throw new Error("the job could not be claimed");
    await claims.fail(claimed.lease, { type: "server_error", code: "internal", message: "It is over." });
  };
  const sweep = () => sweepWorks(test.platform.jobs, [test.platform.batches.chats.work], -1_000);

  /** Sweeps until the job at a path has failed: the sweep leaves a batch that was just closed alone for a moment. */
  const failedAt = (path: string) =>
    pollUntil(
      async () => {
        await sweep();
        const job = await member.get(path);
        return job.string("status") === "failed" ? job : null;
      },
      { what: "the end of the request", everyMs: 100 },
    );

  it("fails its requests once when it may not have reached its provider, and lets the next batch go", async () => {
    const { batches } = test.platform.store;
    const { batch, path } = await closedBatch();
    await sweep();
    expect((await member.get(path)).string("status"), "while its job is open").to.equal("awaiting");
    await failJob(batch.jobId);
    const failed = await failedAt(path);
    expect(failed.at("error.code")).to.equal("provider_failed");
    expect(failed.at("error.details.code")).to.equal("batch_lost");
    expect(await sweep(), "that the next sweep looks at").to.equal(0);
    expect((await batches.batch(batch._id))?.state).to.equal("ended");
    // `closedBatch` expects that it may be submitted.
    const next = await closedBatch();
    await failJob(next.batch.jobId);
    await failedAt(next.path);
  });

  it("gets another job an hour later when the provider has it, until the provider's day is over", async () => {
    const { jobs, store } = test.platform;
    const { batches } = store;
    const { batch, path } = await closedBatch();
    const submitted = { $set: { state: "submitted" as const, providerBatchId: "batch_1" } };
    await batches.changeBatch(batch._id, ["closed"], { ...submitted, $unset: { isSubmitting: "" as const } });
    await failJob(batch.jobId);
    await sweep();
    const { jobId = "" } = (await batches.batch(batch._id)) ?? {};
    expect(jobId, "its job").not.to.equal(batch.jobId);
    expect(await sweep(), "batches that the sweep looks at within the hour").to.equal(0);
    expect(await jobs.find(serviceTenantId, jobId), "its job within the hour").to.equal(null);
    await batches.changeBatch(batch._id, ["submitted"], { $set: { closeAt: new Date() } });
    await sweep();
    expect((await jobs.find(serviceTenantId, jobId))?.status, "its job after an hour").to.equal("queued");
    expect((await member.get(path)).string("status")).to.equal("awaiting");
    const yesterday = new Date(Date.now() - 27 * 3_600_000);
    await batches.changeBatch(batch._id, ["submitted"], { $set: { createdAt: yesterday } });
    await failJob(jobId);
    expect((await failedAt(path)).at("error.details.code")).to.equal("batch_lost");
    expect((await batches.batch(batch._id))?.state).to.equal("ended");
  });
});
