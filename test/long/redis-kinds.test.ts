import { expect } from "chai";
import { type Disposables, withDisposables } from "../../src/lib/disposables.ts";
import { forEachConcurrent } from "../../src/lib/for-each-concurrent.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { openRedis } from "../../src/store/redis/redis.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startCluster, startRedis, startSentinel } from "../support/redis-servers.ts";
import { makeRedisTls, trust } from "../support/redis-tls.ts";
import { startPlatform } from "../support/start-platform.ts";

/** Longest time until the product has healed by itself, in ms. */
const HEALED_WITHIN_MS = 20_000;
const chat = { model: "switchyard-offline", messages: [{ role: "user", content: "What is a lease?" }] };

function opened<T>(open: (disposables: Disposables) => Promise<T>): Promise<T & { close(): Promise<void> }> {
  return withDisposables(async (disposables) => ({ ...(await open(disposables)), close: disposables.close }));
}

const startWith = async (disposables: Disposables, env: Record<string, string>) => {
  const test = await startPlatform({ env: { JOB_LEASE_MS: "2000", RECONCILE_EVERY_MS: "300", ...env } });
  disposables.add(() => test.close());
  return { test, client: makeClient({ url: test.url, key: test.keys.owner }) };
};

/** Ingests documents until one call of them is accepted and done; the time that took, in ms. */
async function untilIngested(client: ApiClient): Promise<number> {
  const from = performance.now();
  await pollUntil(async () => (await client.post("/rag/ingest", { content: `At ${from}.` })).status === 201, {
    timeoutMs: HEALED_WITHIN_MS,
    everyMs: 100,
    what: "an ingested document",
  });
  return performance.now() - from;
}

const untilReady = (client: ApiClient) =>
  pollUntil(async () => (await client.get("/readyz")).at("status") === "ready", {
    timeoutMs: HEALED_WITHIN_MS,
    what: "readiness",
  });

/** What uses Redis besides the queues: the cache of answers, rate limits, who works, the counts of queues. */
async function expectAllWork(client: ApiClient): Promise<void> {
  await untilIngested(client);
  const cached = { headers: { "x-svc-options": "cache=true" } };
  const first = await client.post("/ai/chat", chat, cached);
  expect([first.status, Number(first.headers.get("ratelimit-limit") ?? 1)], first.text).to.deep.equal([
    200,
    Number(first.headers.get("ratelimit-limit") ?? 1),
  ]);
  const ready = await client.get("/readyz");
  expect([ready.at("status"), ready.at("parts.redis.detail")], ready.text).to.deep.equal(["ready", undefined]);
}

describe("a Redis Cluster of three primaries and their replicas", function () {
  this.timeout(120_000);
  let part: Awaited<ReturnType<typeof open>>;
  const open = () =>
    opened(async (disposables) => {
      const cluster = await startCluster(disposables);
      return { cluster, ...(await startWith(disposables, { REDIS_URL: cluster.url, REDIS_CLUSTER: "true" })) };
    });
  before(async () => {
    part = await open();
  });
  after(() => part?.close());

  it("carries jobs, notifications, limits and cached answers", () => expectAllWork(part.client));

  it("is followed when the slot of the queues moves to another server, and what was accepted ends", async () => {
    const { test, client, cluster } = part;
    let isMoving = true;
    const accepted: string[] = [];
    let refused = 0;
    const submit = async () => {
      while (isMoving) {
        const content = `While it moves: ${accepted.length}.`;
        const response = await client.post("/rag/ingest", { content }, { headers: { prefer: "respond-async" } });
        expect(response.status, response.text).to.be.oneOf([202, 503]);
        if (response.status === 202) accepted.push(response.string("jobId"));
        else refused += 1;
      }
    };
    const submitting = submit();
    const moveAndHeal = async () => {
      await pollUntil(() => accepted.length > 5, { what: "jobs before the move" });
      await cluster.moveSlot(`${test.platform.redis.prefix}:any`, async () => {
        await pollUntil(() => refused > 3, { what: "calls while it moves" });
      });
      return untilIngested(client);
    };
    const healedAfterMs = await moveAndHeal().finally(() => {
      isMoving = false;
    });
    await submitting;
    expect(healedAfterMs).to.be.lessThan(HEALED_WITHIN_MS);
    await untilReady(client);
    const view = async (id: string) => (await client.get(`/jobs/${id}`)).string("status");
    const open = new Set(accepted);
    const areEnded = async () => {
      const look = async (id: string) => void ((await view(id)) === "completed" && open.delete(id));
      await forEachConcurrent([...open], 20, look); // a key has 100 places, and more may be accepted
      return open.size === 0;
    };
    await pollUntil(areEnded, { timeoutMs: HEALED_WITHIN_MS, what: "the end of every accepted job" });
  });

  it("is healed after the death of the primary that has the queues", async () => {
    const { test, client, cluster } = part;
    await (await cluster.ownerOf(`${test.platform.redis.prefix}:any`)).kill();
    const { status } = await client.post("/rag/ingest", { content: "In between." }, { headers: { prefer: "wait=1" } });
    expect(status).to.be.oneOf([201, 202, 503]);
    expect(await untilIngested(client)).to.be.lessThan(HEALED_WITHIN_MS);
    await untilReady(client);
    const open = async () =>
      (await test.platform.store.jobs.countOpen(await test.platform.tenancy.ensureTenant("first"), 10)) === 0;
    await pollUntil(open, { timeoutMs: HEALED_WITHIN_MS, what: "the end of every accepted job" });
  });
});

describe("a primary that a Sentinel names", function () {
  this.timeout(120_000);
  let part: Awaited<ReturnType<typeof open>>;
  const open = () =>
    opened(async (disposables) => {
      const group = await startSentinel(disposables);
      return { group, ...(await startWith(disposables, { REDIS_URL: group.url })) };
    });
  before(async () => {
    part = await open();
  });
  after(() => part?.close());

  it("carries jobs, notifications, limits and cached answers", () => expectAllWork(part.client));

  it("is followed when the primary dies and its replica takes its place", async () => {
    await part.group.primary.kill();
    expect(await untilIngested(part.client)).to.be.lessThan(HEALED_WITHIN_MS);
    await untilReady(part.client);
  });
});

describe("a Redis that is spoken to by TLS", function () {
  this.timeout(120_000);

  it("carries jobs, notifications, limits and cached answers as a cluster, whose slot may move", () =>
    withDisposables(async (disposables) => {
      const tls = await makeRedisTls(disposables);
      await trust(tls, disposables);
      const cluster = await startCluster(disposables, tls);
      expect(cluster.url).to.match(/^rediss:/);
      const { test, client } = await startWith(disposables, { REDIS_URL: cluster.url, REDIS_CLUSTER: "true" });
      await expectAllWork(client);
      await cluster.moveSlot(`${test.platform.redis.prefix}:any`);
      expect(await untilIngested(client)).to.be.lessThan(HEALED_WITHIN_MS);
      await disposables.close();
    }));

  it("carries them as a primary that a Sentinel names by TLS, and is followed when that fails over", () =>
    withDisposables(async (disposables) => {
      const tls = await makeRedisTls(disposables);
      await trust(tls, disposables);
      const { url, primary } = await startSentinel(disposables, tls);
      expect(url).to.match(/^rediss\+sentinel:/);
      const { client } = await startWith(disposables, { REDIS_URL: url });
      await expectAllWork(client);
      await primary.kill();
      expect(await untilIngested(client)).to.be.lessThan(HEALED_WITHIN_MS);
      await untilReady(client);
      await disposables.close();
    }));
});

describe("a Redis of another kind than the settings say", function () {
  this.timeout(60_000);

  const refusal = (settings: readonly string[], url: (port: number) => string, isCluster = false) =>
    withDisposables(async (disposables) => {
      const isSentinel = settings.some((line) => line.startsWith("sentinel"));
      const { port } = await startRedis(disposables, settings, { isSentinel });
      const logger = makeLogger({ level: "silent", name: "test" });
      const opening = openRedis({ url: url(port), isCluster, prefix: "x", logger });
      const message = await opening.then(
        async (redis) => redis.close().then(() => "it was opened"),
        (error: Error) => error.message,
      );
      await disposables.close();
      return message;
    });
  const plain = (port: number) => `redis://127.0.0.1:${port}`;
  const sentinel = ["sentinel monitor primary 127.0.0.1 1 1"];

  it("is refused by name", async () => {
    expect(await refusal(["cluster-enabled yes"], plain)).to.contain("Set REDIS_CLUSTER=true");
    expect(await refusal([], plain, true)).to.contain("no Redis Cluster");
    expect(await refusal(sentinel, plain)).to.contain("redis+sentinel://");
    const other = (port: number) => `redis+sentinel://127.0.0.1:${port}/other`;
    expect(await refusal(sentinel, other)).to.contain("no primary of this name");
  });
});

describe("a Redis that may evict jobs", function () {
  this.timeout(60_000);

  it("is one JSON warning and a detail of /readyz", () =>
    withDisposables(async (disposables) => {
      const { port } = await startRedis(disposables, ["maxmemory-policy allkeys-lru"]);
      const { client } = await startWith(disposables, { REDIS_URL: `redis://127.0.0.1:${port}` });
      const ready = await client.get("/readyz");
      expect(ready.at("parts.redis.status")).to.equal("up");
      expect(ready.string("parts.redis.detail")).to.contain("allkeys-lru").and.contain("noeviction");
      await disposables.close();
    }));
});
