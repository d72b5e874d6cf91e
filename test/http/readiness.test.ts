import { isDeepStrictEqual } from "node:util";
import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

describe("/readyz", () => {
  let platform: TestPlatform;
  let client: ApiClient;
  afterEach(() => platform.close());

  const start = async (options: { workers: boolean; env?: Record<string, string> }) => {
    platform = await startPlatform(options);
    client = makeClient({ url: platform.url, key: platform.keys.owner });
  };

  it("reports store, Redis, workers, vector index and queue lag", async () => {
    await start({ workers: true });
    const { status, body, at } = await client.get("/readyz");
    expect(status, JSON.stringify(body)).to.equal(200);
    for (const part of ["store", "redis", "workers", "vectorIndex", "queueLag"]) {
      expect(at(`parts.${part}.status`), part).to.equal("up");
    }
    expect([at("parts.queueLag.waiting"), at("parts.queueLag.oldestWaitingMs")]).to.deep.equal([0, 0]);
  });

  it("reports the age of the oldest waiting job, and is not ready once that is too much", async () => {
    await start({ workers: false, env: { READY_QUEUE_LAG_MS: "1000" } });
    const headers = { prefer: "respond-async" };
    const accepted = await client.post("/rag/ingest", { content: "Nobody takes it." }, { headers });
    const lagging = await pollUntil(async () => {
      const answer = await client.get("/readyz");
      return answer.at("parts.queueLag.status") === "down" ? answer : undefined;
    });
    expect(lagging.status).to.equal(503);
    expect(lagging.at("parts.queueLag.oldestWaitingMs")).to.be.above(1_000);
    expect(lagging.at("parts.queueLag.waiting")).to.equal(1);
    expect(lagging.string("parts.queueLag.detail")).to.contain("ingestion");
    await client.post(`/jobs/${accepted.string("jobId")}/cancel`);
    await pollUntil(async () => (await client.get("/readyz")).at("parts.queueLag.status") === "up");
  });

  it("names a queue that somebody has paused, until it is resumed", async () => {
    await start({ workers: true });
    const queue = platform.platform.queues.find("agent-runs");
    const workersPart = async () => {
      const { at } = await client.get("/readyz");
      return { status: at("status"), part: at("parts.workers.status"), detail: at("parts.workers.detail") };
    };
    const figure = async () =>
      (await platform.platform.jobs.measure()).filter(({ isPaused }) => isPaused).map(({ queue }) => queue);
    const named = { status: "degraded", part: "down", detail: "somebody has paused agent-runs" };
    await queue.pause();
    await pollUntil(async () => isDeepStrictEqual(await workersPart(), named), { what: "the queue's name" });
    expect(await figure()).to.deep.equal(["agent-runs"]);
    await queue.resume();
    const ready = { status: "ready", part: "up", detail: undefined };
    await pollUntil(async () => isDeepStrictEqual(await workersPart(), ready), { what: "readiness" });
    expect(await figure()).to.deep.equal([]);
  });
});
