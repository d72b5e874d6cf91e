import { expect } from "chai";
import { Redis } from "ioredis";
import { makeLogger } from "../../src/observe/logger.ts";
import { makeRateLimits, type RateLimits } from "../../src/tenancy/limits.ts";
import { makeClient, valueAt } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { beginPost } from "../support/raw-http.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

describe("rate limits over HTTP", () => {
  let platform: TestPlatform;
  before(async () => {
    platform = await startPlatform({ workers: false, env: { RATE_LIMIT_RPM: "6", RATE_LIMIT_CONCURRENT: "3" } });
  });
  after(() => platform.close());

  it("a tenant sees its limit, and is refused with the time to wait above it; others are not", async () => {
    const member = makeClient({ url: platform.url, key: platform.keys.member });
    for (let n = 1; n <= 6; n += 1) {
      const { status, headers } = await member.get("/jobs");
      expect([status, headers.get("ratelimit-policy")]).to.deep.equal([200, '"requests";q=6;w=60']);
      expect(headers.get("ratelimit")).to.match(new RegExp(`^"requests";r=${6 - n};t=\\d+$`));
    }
    const refused = await member.get("/jobs");
    expect([refused.status, refused.at("error.code")]).to.deep.equal([429, "rate_limited"]);
    expect(refused.headers.get("ratelimit")).to.match(/^"requests";r=0;t=60$/);
    expect(Number(refused.headers.get("retry-after"))).to.be.within(1, 10);
    const admin = makeClient({ url: platform.url, key: platform.keys.admin });
    expect((await admin.get("/jobs")).status, "another key of the tenant").to.equal(429);
    const stranger = makeClient({ url: platform.url, key: platform.keys.stranger });
    expect((await stranger.get("/jobs")).status, "another tenant").to.equal(200);
    expect((await member.get("/healthz")).status, "what is public").to.equal(200);
  });
});

describe("places for concurrent requests", () => {
  let platform: TestPlatform;
  before(async () => {
    platform = await startPlatform({ workers: false, env: { RATE_LIMIT_CONCURRENT: "3" } });
  });
  after(() => platform.close());

  it("are taken by open streams, and free again after those are closed", async () => {
    const member = makeClient({ url: platform.url, key: platform.keys.member });
    const job = await member.post(
      "/rag/ingest",
      { title: "t", content: "c" },
      { headers: { prefer: "respond-async" } },
    );
    const path = `/jobs/${job.string("jobId")}/events`;
    const controller = new AbortController();
    for (let n = 0; n < 3; n += 1) await member.events("GET", path, { signal: controller.signal });
    const refused = await member.get("/jobs");
    expect([refused.status, refused.at("error.code")]).to.deep.equal([429, "too_many_concurrent"]);
    const stranger = makeClient({ url: platform.url, key: platform.keys.stranger });
    expect((await stranger.get("/jobs")).status, "another tenant").to.equal(200);
    controller.abort();
    await pollUntil(async () => (await member.get("/jobs")).status === 200);
  });
});

describe("memory for large bodies", () => {
  let platform: TestPlatform;
  before(async () => {
    platform = await startPlatform({ workers: false });
  });
  after(() => platform.close());

  it("is not all reserved by the uploads that one tenant announces", async () => {
    const lengths = [...Array<number>(12).fill(20 << 20), (16 << 20) - 100];
    const url = `${platform.url}/rag/ingest`;
    const uploads = lengths.map((length) => beginPost(url, { key: platform.keys.member, length }));
    try {
      const outcomes = await Promise.all(
        uploads.map(({ asked, answer }) => Promise.race([asked.then(() => "taken" as const), answer])),
      );
      const refused = outcomes.filter((outcome) => outcome !== "taken");
      expect(refused).to.have.length(10);
      for (const { status, body } of refused) {
        expect([status, valueAt(body, "error.code")]).to.deep.equal([429, "too_many_concurrent"]);
      }
      const large = { messages: Array(5).fill({ role: "user", content: "x".repeat(300_000) }) };
      const stranger = makeClient({ url: platform.url, key: platform.keys.stranger });
      expect((await stranger.post("/ai/chat", large)).status).to.equal(200);
      const member = makeClient({ url: platform.url, key: platform.keys.member });
      expect((await member.get("/jobs")).status).to.equal(200);
    } finally {
      for (const { end } of uploads) end();
    }
  });
});

describe("the rate of large bodies", () => {
  let platform: TestPlatform;
  before(async () => {
    platform = await startPlatform({ workers: false, env: { UPLOAD_BYTES_PER_SECOND: "65536" } });
  });
  after(() => platform.close());

  it("holds for each tenant, takes the first whatever its size, and leaves small bodies alone", async () => {
    const member = makeClient({ url: platform.url, key: platform.keys.member });
    const large = { messages: Array(5).fill({ role: "user", content: "x".repeat(300_000) }) };
    expect((await member.post("/ai/chat", large)).status).to.equal(200);
    const refused = await member.post("/ai/chat", large);
    expect([refused.status, refused.at("error.code")]).to.deep.equal([429, "rate_limited"]);
    expect(Number(refused.headers.get("retry-after"))).to.be.within(10, 24);
    const medium = { messages: [{ role: "user", content: "x".repeat(70_000) }] };
    expect((await member.post("/ai/chat", medium)).status, "one of 70 kB").to.equal(429);
    const small = { messages: [{ role: "user", content: "x".repeat(60_000) }] };
    expect((await member.post("/ai/chat", small)).status, "one of 60 kB").to.equal(200);
    const stranger = makeClient({ url: platform.url, key: platform.keys.stranger });
    expect((await stranger.post("/ai/chat", large)).status, "another tenant").to.equal(200);
  });
});

describe("the burst of large bodies", () => {
  let platform: TestPlatform;
  before(async () => {
    platform = await startPlatform({ workers: false, env: { RATE_LIMIT_RPM: "6" } });
  });
  after(() => platform.close());

  it("is slowed to the rate of requests while another tenant works in the process", async () => {
    const stranger = makeClient({ url: platform.url, key: platform.keys.stranger });
    const small = { messages: [{ role: "user", content: "What is a lease?" }] };
    expect((await stranger.post("/ai/chat", small)).status).to.equal(200);
    const ended: number[] = [];
    const stop = new AbortController();
    const send = async () => {
      const { status } = await fetch(`${platform.url}/ai/chat`, {
        method: "POST",
        headers: { authorization: `Bearer ${platform.keys.member}`, "content-type": "application/json" },
        body: JSON.stringify({ messages: [{ role: "user", content: "x".repeat(70_000) }] }),
        signal: stop.signal,
      });
      ended.push(status);
    };
    await send();
    const second = send().catch(() => "stopped");
    for (let n = 0; n < 4; n += 1) expect((await stranger.post("/ai/chat", small)).status).to.equal(200);
    expect(ended, "the first of them, since the second is read after 10 s").to.deep.equal([200]);
    stop.abort();
    expect(await second).to.equal("stopped");
  });
});

describe("rate limits of several processes", () => {
  const logger = makeLogger({ level: "silent", name: "test" });
  let platform: TestPlatform;
  const open: RateLimits[] = [];
  before(async () => {
    platform = await startPlatform({ workers: false });
  });
  after(async () => {
    for (const limits of open) limits.close();
    await platform.close();
  });

  /** The limiter of one process; those with the same `name` share a bucket. */
  const limiter = (requestsPerMinute: number, name: string, producer = platform.platform.redis.producer) => {
    const limits = makeRateLimits({
      config: { requestsPerMinute, concurrentRequests: 10 },
      redis: { producer, prefix: `${platform.platform.redis.prefix}:${name}` },
      logger,
    });
    open.push(limits);
    return limits;
  };

  it("together admit as many requests as the bucket holds, and no more", async () => {
    const capacity = 200;
    const processes = [1, 2, 3].map(() => limiter(capacity, "shared"));
    const startedAt = performance.now();
    const rates = await Promise.all(
      Array.from({ length: 600 }, (_, n) => processes[n % 3]?.take("ten_1") ?? Promise.reject(new Error("no process"))),
    );
    const refilled = ((performance.now() - startedAt) * capacity) / 60_000;
    const admitted = rates.filter(({ isAllowed }) => isAllowed).length;
    expect(admitted).to.be.within(capacity, capacity + Math.ceil(refilled));
    for (const rate of rates) if (!rate.isAllowed) expect(rate.retryAfterMs).to.be.within(1, 60_000 / capacity + 1);
  });

  it("a busy tenant is answered without waiting for Redis, nearly always", async () => {
    const limits = limiter(100_000, "busy");
    await limits.take("ten_1");
    let waits = 0;
    for (let n = 0; n < 20_000; n += 1) {
      const taken = limits.take("ten_1");
      const now = await Promise.race([taken, Promise.resolve(null)]);
      if (now === null) waits += 1;
      await taken;
      if (n % 50 === 0) await new Promise<void>((resolve) => setImmediate(resolve));
    }
    expect(waits).to.be.below(200);
  });

  it("a silent process returns the tokens that it had leased", async () => {
    const [first, second] = [limiter(100, "idle"), limiter(100, "idle")];
    await first.take("ten_1");
    let admitted = 0;
    await pollUntil(async () => {
      if ((await second.take("ten_1")).isAllowed) admitted += 1;
      return admitted >= 99;
    });
  });

  it("continues in each process alone while Redis is unavailable", async () => {
    const nowhere = { host: "127.0.0.1", port: 1, enableOfflineQueue: false, retryStrategy: () => null };
    const producer = new Redis(nowhere);
    producer.on("error", () => undefined);
    const limits = limiter(5, "away", producer);
    const rates = [];
    for (let n = 0; n < 7; n += 1) rates.push(await limits.take("ten_1"));
    expect(rates.map(({ isAllowed }) => isAllowed)).to.deep.equal([true, true, true, true, true, false, false]);
  });
});
