import { expect } from "chai";
import { Rescheduled } from "../../src/jobs/reschedule.ts";
import { type EmbeddingServer, startEmbeddingServer, tokensOf } from "../support/embedding-server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { workContext } from "../support/work-context.ts";

const [small, large] = ["text-embedding-3-small", "text-embedding-3-large"] as const;
const usdPerToken = { [small]: 0.02e-6, [large]: 0.13e-6 };
const count = 8;
const textOf = (n: number) => `Beacon ${n} on the breakwater shows ${n + 2} flashes.`;
/** More chunks than one call takes. */
const long = Array.from({ length: 300 }, (_, n) => `## Reach ${n}\n\nReach ${n} is ${n * 3 + 1} cables long.`).join(
  "\n\n",
);

describe("the move of documents by batches of the provider", () => {
  let server: EmbeddingServer;
  let test: TestPlatform;
  let client: ApiClient;
  let chunks = count;
  const start = async (workers: boolean) => {
    server = await startEmbeddingServer();
    const env = {
      OPENAI_API_KEY: "sk-platform-0123456789abcdef",
      OPENAI_BASE_URL: server.url,
      BATCH_POLL_MS: "50",
      BATCH_SETTLE_MS: "300",
      RECONCILE_EVERY_MS: "100",
    };
    test = await startPlatform({ env, workers });
    client = makeClient({ url: test.url, key: test.keys.admin });
  };
  const stop = async () => {
    await test.close();
    await server.close();
  };
  const setModel = async (embeddingModel: string) => {
    const set = await client.request("PUT", "/rag/settings", { body: { embeddingModel } });
    expect(set.status, set.text).to.equal(200);
  };
  const found = async () => {
    const answer = await client.post("/rag/query", { query: "Which beacon flashes?", mode: "vector", topK: 50 });
    expect(answer.status, answer.text).to.equal(200);
    const contents = (answer.at("results") as { content: string }[]).map(({ content }) => content);
    return contents.filter((text) => text.startsWith("Beacon")).sort();
  };
  const beacons = Array.from({ length: count }, (_, n) => textOf(n)).sort();
  /** What the ledger has of a model's embeddings by the surface of moves. */
  const ledger = async (model: string) => {
    await test.platform.gateway.flush();
    const { data } = await test.platform.gateway.logs(await tenantOf(test), {}, { limit: 200 });
    return data.filter((one) => one.model === model && one.surface === "reindex");
  };
  const expectPaidOnce = async (model: typeof small | typeof large, ordinary: readonly string[] = []) => {
    const records = await ledger(model);
    const batched = records.filter(({ isBatched }) => isBatched);
    const tokens = tokensOf(server.batches.texts());
    expect(
      batched.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
      "tokens at half the price",
    ).to.equal(tokens);
    const usd = batched.reduce((sum, { costNanoUsd }) => sum + costNanoUsd, 0) / 1e9;
    expect(usd).to.be.closeTo((tokens * usdPerToken[model]) / 2, 2e-9 * (batched.length + 1));
    const atOnce = records.filter(({ isBatched }) => !isBatched).reduce((sum, { inputTokens }) => sum + inputTokens, 0);
    expect(atOnce, "tokens at the full price").to.equal(tokensOf(["dimensions", ...ordinary]));
  };
  const batchOf = (n: number) => pollUntil(() => server.batches.list[n], { what: `batch ${n}` });
  const endOf = (jobId: string) =>
    pollUntil(
      async () => {
        const job = await client.get(`/jobs/${jobId}`);
        return ["completed", "failed", "cancelled"].includes(job.string("status")) ? job : null;
      },
      { timeoutMs: 20_000, what: "the end of the job" },
    );

  describe("with workers", () => {
    beforeEach(async () => {
      await start(true);
      for (let n = 0; n < count; n += 1) await client.post("/rag/ingest", { content: textOf(n) });
      await setModel(small);
    });
    afterEach(stop);
    const reindex = (body: object = {}) => client.post("/rag/reindex", body, { headers: { prefer: "respond-async" } });
    /** The texts of beacons that were embedded by ordinary calls, without those of queries. */
    const ordinary = () => server.textsOf(small).filter((text) => text.startsWith("Beacon"));

    it("pays half, finds every document meanwhile, and embeds nothing else", async () => {
      const ingested = await client.post("/rag/ingest", { content: long, collection: "reaches" });
      expect(ingested.status, ingested.text).to.equal(201);
      await setModel(large); // the long one is on the small model
      chunks = count + Number(ingested.at("chunks"));
      expect(chunks).to.be.above(256 + count);
      const accepted = await reindex();
      const batch = await batchOf(0);
      expect(await found()).to.deep.equal(beacons);
      expect((await client.get("/rag/settings")).at("reindex.mode")).to.equal("batch");
      batch.status = "completed";
      const job = await endOf(accepted.string("jobId"));
      expect(job.at("result")).to.deep.equal({ model: large, moved: count + 1, left: 0, batched: count + 1 });
      expect(server.batches.list.flatMap(({ lines }) => lines)).to.have.lengthOf(count + 2);
      expect(server.batches.texts()).to.have.lengthOf(chunks);
      expect(new Set(server.batches.texts()).size).to.equal(chunks);
      expect(await found()).to.deep.equal(beacons);
      await expectPaidOnce(large);
    });

    it("is left out where the caller does not want to wait", async () => {
      const job = await endOf((await reindex({ mode: "now" })).string("jobId"));
      expect(job.at("result")).to.deep.equal({ model: small, moved: count, left: 0 });
      expect(server.batches.list).to.have.lengthOf(0);
      expect((await reindex({ mode: "soon" })).status).to.equal(400);
    });

    it("goes on at the ordinary price when the provider refuses the batch", async () => {
      server.batches.onSubmit(() => 403);
      const job = await endOf((await reindex()).string("jobId"));
      expect(job.at("result")).to.deep.equal({ model: small, moved: count, left: 0 });
      expect(ordinary().sort()).to.deep.equal(beacons);
      await expectPaidOnce(small, beacons);
      expect((await ledger(small)).find(({ isBatched }) => isBatched)).to.include({
        outcome: "failed",
        costNanoUsd: 0,
      });
    });

    it("goes on at the ordinary price when the batch fails", async () => {
      const accepted = await reindex();
      (await batchOf(0)).status = "failed";
      const job = await endOf(accepted.string("jobId"));
      expect(job.at("result")).to.deep.equal({ model: small, moved: count, left: 0 });
      expect(server.batches.list).to.have.lengthOf(1);
      await expectPaidOnce(small, beacons);
    });

    it("embeds at the ordinary price what the batch let expire, and only that", async () => {
      const accepted = await reindex();
      const batch = await batchOf(0);
      batch.isEmbedded = ({ body }) => body.input[0] !== textOf(3);
      batch.status = "expired";
      const job = await endOf(accepted.string("jobId"));
      expect(job.at("result")).to.deep.equal({ model: small, moved: count, left: 0, batched: count - 1 });
      expect(ordinary()).to.deep.equal([textOf(3)]);
      await expectPaidOnce(small, [textOf(3)]);
    });

    it("finds its batch at the provider when the response was lost", async () => {
      let losses = 0;
      server.batches.onSubmit((batch) => {
        batch.status = "completed";
        losses += 1;
        return losses > 1;
      });
      const job = await endOf((await reindex()).string("jobId"));
      expect(job.at("result")).to.deep.include({ moved: count, batched: count });
      expect(server.batches.list).to.have.lengthOf(1);
      await expectPaidOnce(small);
    });

    it("never puts an earlier text in the place of a new one", async () => {
      const externalId = "beacon";
      await setModel(large);
      await client.post("/rag/ingest", { content: "Beacon old.", externalId });
      await setModel(small);
      const accepted = await reindex();
      const batch = await batchOf(0);
      await client.post("/rag/ingest", { content: "Beacon new.", externalId });
      batch.status = "completed";
      expect((await endOf(accepted.string("jobId"))).at("result")).to.deep.include({ left: 0, batched: count });
      expect(await found()).to.deep.equal([...beacons, "Beacon new."].sort());
    });

    it("cancels the batch with the job, and charges what was embedded by then", async () => {
      const accepted = await reindex();
      const batch = await batchOf(0);
      batch.isEmbedded = ({ body }) => [textOf(1), textOf(2)].includes(body.input[0] ?? "");
      const jobId = accepted.string("jobId");
      await pollUntil(async () => (await client.get(`/jobs/${jobId}`)).at("status") === "awaiting");
      expect((await client.post(`/jobs/${jobId}/cancel`)).status).to.be.oneOf([200, 202]);
      await pollUntil(() => batch.status === "cancelled", { what: "the batch's cancellation" });
      await pollUntil(async () => (await ledger(small)).some(({ isBatched }) => isBatched), { what: "the charge" });
      expect(server.batches.texts().sort()).to.deep.equal([textOf(1), textOf(2)]);
      await expectPaidOnce(small);
      expect((await client.get("/rag/settings")).at("reindex")).to.equal(undefined);
      const again = await endOf((await reindex({ mode: "now" })).string("jobId"));
      expect(again.at("result")).to.deep.equal({ model: small, moved: count, left: 0 });
    });

    it("sets aside what a batch may cost, and settles it", async () => {
      const tenantId = await tenantOf(test);
      await test.platform.gateway.setBudget(tenantId, 1);
      const accepted = await reindex();
      const batch = await batchOf(0);
      expect((await test.platform.gateway.budget(tenantId))?.reservedUsd).to.be.above(0);
      batch.status = "completed";
      await endOf(accepted.string("jobId"));
      await test.platform.gateway.flush();
      const { leftUsd, reservedUsd } = (await test.platform.gateway.budget(tenantId)) ?? {};
      const spent = (await ledger(small)).reduce((sum, { costNanoUsd }) => sum + costNanoUsd, 0) / 1e9;
      expect(reservedUsd).to.be.closeTo(0, 1e-12);
      expect(leftUsd).to.be.closeTo(1 - spent, 1e-9);
    });
  });

  /** There are no workers: the test itself is the one that dies, and the one that resumes. */
  describe("whose worker dies", () => {
    let tenantId: string;
    let ids: { recordId: string; jobId: string };
    before(async () => {
      await start(true);
      for (let n = 0; n < count; n += 1) await client.post("/rag/ingest", { content: textOf(n) });
      await setModel(small);
      tenantId = await tenantOf(test);
    });
    after(stop);
    const run = (signal: AbortSignal) =>
      test.platform.rag.reindexing.work.run(workContext(test, { tenantId, ...ids, signal }));

    it("while the results are read pays nothing twice, and resumes", async () => {
      const record = {
        _id: "rix_01M7XR2W2C3EJZ25XEJQCM9JX5",
        tenantId,
        jobId: "job_01M7XR2W2C3EJZ25XEJQCM9JX5",
        keyId: "key_test",
        model: small,
        mode: "batch" as const,
        ...{ moved: 0, isOpen: true as const, createdAt: new Date(), updatedAt: new Date() },
      };
      await test.platform.store.reindexes.insertOnly(record);
      ids = { recordId: record._id, jobId: record.jobId };
      const alive = new AbortController().signal;
      expect(await run(alive).catch((error: unknown) => error)).to.be.instanceOf(Rescheduled);
      const batch = await batchOf(0);
      batch.status = "completed";
      const dying = new AbortController();
      let reads = 0;
      server.batches.onResults(async () => {
        reads += 1;
        if (reads === 2) dying.abort(); // the output was read, the file of errors is asked for
      });
      expect(await run(dying.signal).catch((error: unknown) => error)).to.be.an("error");
      const { moved } = (await test.platform.store.reindexes.get(tenantId, record._id)) ?? {};
      expect(moved).to.be.above(0);
      expect((await ledger(small)).filter(({ isBatched }) => isBatched)).to.have.lengthOf(0);
      const result = await run(alive);
      expect(result).to.deep.equal({ model: small, moved: count, left: 0, batched: count });
      expect(server.batches.list).to.have.lengthOf(1);
      expect(server.textsOf(small).filter((text) => text.startsWith("Beacon"))).to.have.lengthOf(0);
      expect(await found()).to.deep.equal(beacons);
      await expectPaidOnce(small);
    });
  });
});
