import { expect } from "chai";
import { batchUsage, type FakeBatches, startFakeBatches } from "../support/fake-provider/batch-server.ts";
import { makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const tenants = 5;
const each = 200;
const models = ["gpt-5.4-nano", "claude-haiku-5-5", "meta-llm"];
/** What the fake's usage costs at half the price, in billionths of a USD; the platform's own model is free. */
const halfPrice = (model: { inputCostPer1k: number; outputCostPer1k: number }) =>
  Math.round(((batchUsage.input * model.inputCostPer1k + batchUsage.output * model.outputCostPer1k) / 1_000 / 2) * 1e9);

describe("1,000 batched chats of five tenants, with workers that are killed", function () {
  this.timeout(180_000);
  let upstream: FakeBatches;
  let test: TestPlatform;
  const workers: HostProcess[] = [];
  before(async () => {
    upstream = await startFakeBatches();
    upstream.setDuration(1_500);
    test = await startPlatform({
      workers: false,
      env: {
        OPENAI_API_KEY: "sk-platform-0123456789abcdef",
        OPENAI_BASE_URL: upstream.url,
        ANTHROPIC_API_KEY: "sk-ant-platform-0123456789abc",
        ANTHROPIC_BASE_URL: upstream.origin,
        BATCH_MAX_LINES: "100",
        BATCH_COLLECT_MS: "500",
        BATCH_POLL_MS: "200",
        JOB_LEASE_MS: "1000",
        RECONCILE_EVERY_MS: "300",
      },
    });
  });
  after(async () => {
    await Promise.all(workers.map((worker) => worker.kill()));
    await test.close();
    await upstream.close();
  });

  const startWorkers = async () => {
    workers.push(...(await Promise.all([1, 2].map(() => startProcess("workers/main.ts", test.env)))));
  };
  const killWorkers = () => Promise.all(workers.splice(0).map((worker) => worker.kill()));

  it("every job ends once, with its own answer, at half the price, and nothing is submitted twice", async () => {
    await startWorkers();
    const { tenancy, store, gateway } = test.platform;
    const callers = await Promise.all(
      Array.from({ length: tenants }, async (_, n) => {
        const tenantId = await tenancy.ensureTenant(`batch-${n}`);
        const { key } = await tenancy.createKey({ tenantId, role: "member", subject: "loader" });
        return { tenantId, client: makeClient({ url: test.url, key }), asked: new Map<string, string>() };
      }),
    );
    const submitting = callers.map(async ({ client, asked }, tenant) => {
      for (let n = 0; n < each; n += 20) {
        const accepted = await Promise.all(
          Array.from({ length: 20 }, async (_, k) => {
            const word = `ticket${tenant}x${n + k}`;
            const content = `Your word is ${word}. Which is your word?`;
            const model = models[(n + k) % models.length];
            const body = { model, prefer_async: true, messages: [{ role: "user", content }] };
            const answer = await client.post("/ai/chat", body);
            expect(answer.status, answer.text).to.equal(202);
            return [answer.string("jobId"), word] as const;
          }),
        );
        for (const [jobId, word] of accepted) asked.set(jobId, word);
      }
    });
    await pollUntil(() => upstream.batches.length >= 1, { timeoutMs: 30_000, what: "the first batch" });
    await killWorkers(); // in the middle of handing in
    await startWorkers();
    await Promise.all(submitting);
    const open = async () => {
      const counts = await Promise.all(callers.map(({ tenantId }) => store.jobs.countOpen(tenantId, 1_000)));
      return counts.reduce((sum, count) => sum + count, 0);
    };
    await pollUntil(async () => (await open()) < tenants * each * 0.8, {
      timeoutMs: 40_000,
      what: "the first answers",
    });
    await killWorkers(); // in the middle of giving answers
    await startWorkers();
    await pollUntil(async () => (await open()) === 0, { timeoutMs: 60_000, what: "the end of all jobs" });

    const listed = await gateway.models(callers[0]?.tenantId ?? "", {});
    const prices = new Map(listed.map((model) => [model.id, halfPrice(model)]));
    for (const { tenantId, asked } of callers) {
      let costNanoUsd = 0;
      for (const [jobId, word] of asked) {
        const job = await store.jobs.find(tenantId, jobId);
        const result = job?.result as { text: string; model: string; costUsd: number };
        expect(job?.status, JSON.stringify(job?.error)).to.equal("completed");
        expect(result.text).to.contain(word);
        const price = prices.get(result.model) ?? Number.NaN;
        expect(Math.round(result.costUsd * 1e9)).to.equal(price);
        costNanoUsd += price;
      }
      expect(asked.size).to.equal(each);
      const day = new Date().toISOString().slice(0, 10);
      const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
      const { total } = await gateway.usage(tenantId, { from: yesterday, to: day, groupBy: "surface" });
      expect(total.costNanoUsd, "the ledger").to.equal(costNanoUsd);
      expect(total.requests, "one record each").to.equal(each);
    }
    expect(upstream.submitted.size).to.be.above(600);
    expect(Math.max(...upstream.submitted.values()), "how often an item was submitted").to.equal(1);
  });
});
