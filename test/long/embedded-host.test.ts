import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { ensureServices, type Services } from "../../src/embedded/ensure.ts";
import { redisState } from "../../src/embedded/redis-server.ts";
import { openServiceSecrets } from "../../src/embedded/service-secrets.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { connectStore, type StoreConnection } from "../../src/store/connect.ts";
import { openRedis, type RedisConnections } from "../../src/store/redis/redis.ts";
import { pollUntil } from "../support/poll-until.ts";
import { isAlive } from "../support/service-pids.ts";

const logger = makeLogger({ level: "silent", name: "test" });

describe("the host of the embedded services", function () {
  this.timeout(60_000);
  let dataDir: string;
  const open: { close(): Promise<void> }[] = [];
  const later = <T extends { close(): Promise<void> }>(one: T): T => {
    open.push(one);
    return one;
  };

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "switchyard-host-"));
  });
  afterEach(async () => {
    for (let one = open.pop(); one; one = open.pop()) await one.close();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  });

  const ensure = async () => later(await ensureServices({ dataDir, mongo: true, redis: true, logger }));
  const connect = async (services: Services) =>
    later(await connectStore({ url: services.mongoUrl ?? "", db: "test", timeoutMs: 2_000 }));
  const hostPid = async ({ db }: StoreConnection) => Number((await db.command({ serverStatus: 1 })).pid);
  const redisPid = async ({ producer }: RedisConnections) =>
    Number(/process_id:(\d+)/.exec(await producer.info("server"))?.[1]);

  it("is one process for all that share a data folder", async () => {
    const [first, second] = await Promise.all([ensure(), ensure()]);
    expect(first.mongoUrl).to.equal(second.mongoUrl);
    const [one, other] = await Promise.all([connect(first), connect(second)]);
    expect(await hostPid(one)).to.equal(await hostPid(other));
  });

  it("is replaced when it is killed in the middle of 2,000 writes, and no acknowledged write is lost", async () => {
    const services = await ensure();
    const store = await connect(services);
    const things = store.db.collection<{ _id: number }>("things");
    const acknowledged: number[] = [];
    const pid = await hostPid(store);
    const writes = Array.from({ length: 2_000 }, async (_, n) => {
      await things.insertOne({ _id: n });
      acknowledged.push(n);
      if (acknowledged.length === 500) process.kill(pid, "SIGKILL");
    });
    await Promise.allSettled(writes);
    expect(acknowledged.length).to.be.at.least(500);
    const stored = await pollUntil(
      () =>
        things
          .find()
          .toArray()
          .catch(() => null),
      {
        timeoutMs: 20_000,
        what: "the store's return",
      },
    );
    const there = new Set(stored.map(({ _id }) => _id));
    expect(acknowledged.filter((n) => !there.has(n))).to.deep.equal([]);
    expect(await hostPid(store), "the new host").to.not.equal(pid);
  });

  it("restarts Redis with its jobs when it dies", async () => {
    const services = await ensure();
    const redis = later(await openRedis({ url: services.redisUrl ?? "", prefix: "test", logger }));
    await redis.producer.set("kept", "yes");
    await redis.producer.config("SET", "appendfsync", "always");
    await redis.producer.set("kept", "also this");
    const pid = await redisPid(redis);
    process.kill(pid, "SIGKILL");
    const value = await pollUntil(() => redis.producer.get("kept").catch(() => null), {
      timeoutMs: 20_000,
      what: "the return of Redis",
    });
    expect(value).to.equal("also this");
    expect(await redisPid(redis)).to.not.equal(pid);
  });

  it("ends the Redis of a host that was killed, and the next one has what it had", async () => {
    const services = await ensure();
    const store = await connect(services);
    const redis = later(await openRedis({ url: services.redisUrl ?? "", prefix: "test", logger }));
    await redis.producer.set("kept", "yes");
    const [host, server] = [await hostPid(store), await redisPid(redis)];
    process.kill(host, "SIGKILL");
    const value = await pollUntil(
      async () => {
        const pid = await redisPid(redis).catch(() => server);
        return pid !== server && (await redis.producer.get("kept").catch(() => null));
      },
      { timeoutMs: 20_000, what: "the Redis of the new host" },
    );
    expect(value).to.equal("yes");
    expect(isAlive(server)).to.equal(false);
  });

  it("is one process for all that share a Redis while the store is elsewhere", async () => {
    const alone = async () => later(await ensureServices({ dataDir, mongo: false, redis: true, logger }));
    const [first, second, third] = await Promise.all([alone(), alone(), alone()]);
    expect(new Set([first.redisUrl, second.redisUrl, third.redisUrl]).size).to.equal(1);
    const redis = later(await openRedis({ url: first.redisUrl ?? "", prefix: "test", logger }));
    await redis.producer.set("kept", "yes");
    await Promise.all([second.close(), third.close()]);
    const value = await pollUntil(() => redis.producer.get("kept").catch(() => null), {
      timeoutMs: 20_000,
      what: "Redis for the one who is left",
    });
    expect(value).to.equal("yes");
  });

  it("treats a slow Redis as busy, not as dead", async () => {
    const services = await ensure();
    const place = { socketPath: join(dataDir, "run/redis.sock"), secrets: await openServiceSecrets(dataDir) };
    const redis = later(await openRedis({ url: services.redisUrl ?? "", prefix: "test", logger }));
    const pid = await redisPid(redis);
    process.kill(pid, "SIGSTOP");
    try {
      // Each look takes a second: the host has looked too by then, and must not have started another.
      expect([await redisState(place), await redisState(place), await redisState(place)]).to.deep.equal(
        Array.from({ length: 3 }, () => "busy"),
      );
    } finally {
      process.kill(pid, "SIGCONT");
    }
    expect(await redisState(place)).to.equal("serving");
    expect(await redisPid(redis)).to.equal(pid);
  });
});
