import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { Redis } from "ioredis";
import { MongoClient } from "mongodb";
import { ensureServices } from "../../src/embedded/ensure.ts";
import { startMongoServer } from "../../src/embedded/mongo/server.ts";
import { startRedisServer } from "../../src/embedded/redis-server.ts";
import { openServiceSecrets } from "../../src/embedded/service-secrets.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { connectStore } from "../../src/store/connect.ts";
import { makeLyingStore } from "../support/lying-store.ts";

const logger = makeLogger({ level: "silent", name: "test" });

describe("the secret of the embedded services", function () {
  this.timeout(60_000);
  let dataDir: string;
  let run: string;
  const open: { close(): Promise<unknown> }[] = [];
  const later = <T extends { close(): Promise<unknown> }>(one: T): T => {
    open.push(one);
    return one;
  };

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "switchyard-secret-"));
    run = join(dataDir, "run");
    await mkdir(run, { mode: 0o700 });
  });
  afterEach(async () => {
    for (let one = open.pop(); one; one = open.pop()) await one.close();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  });

  const listenAt = async (name: string, serve: (socket: Socket) => void) => {
    const sockets = new Set<Socket>();
    const server: Server = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => undefined);
      serve(socket);
    });
    await once(server.listen(join(run, name)), "listening");
    later({
      close: async () => {
        for (const socket of sockets) socket.destroy();
        await new Promise((resolve) => server.close(resolve));
      },
    });
  };
  const rejectionOf = async (part: { mongo: boolean; redis: boolean }) => {
    const outcome = await ensureServices({ dataDir, ...part, logger }).then(later, (error: unknown) => error);
    return outcome instanceof Error ? outcome.message : "none: it has started";
  };
  const foreign = (name: string) => `What answers at ${join(run, name)} does not know the secret of the data folder`;

  it("rejects a store that does not know it, and one that accepts any proof", async () => {
    const options = { dataFile: join(dataDir, "other.sqlite"), socketPath: join(run, "mongo.sock"), logger };
    for (const password of [{}, { password: "another" }]) {
      const other = await startMongoServer({ ...options, ...password });
      expect(await rejectionOf({ mongo: true, redis: false })).to.include(foreign("mongo.sock"));
      await other.close();
    }
    await listenAt("mongo.sock", makeLyingStore());
    expect(await rejectionOf({ mongo: true, redis: false })).to.include(foreign("mongo.sock"));
  });

  it("rejects a Redis that does not know it, and one that accepts any password", async () => {
    const secrets = { mongo: "-", redis: "another", redisProof: "another-too" };
    const dir = join(dataDir, "elsewhere");
    const other = await startRedisServer({ dir, socketPath: join(run, "redis.sock"), secrets });
    try {
      expect(await rejectionOf({ mongo: false, redis: true })).to.include(foreign("redis.sock"));
      expect(await rejectionOf({ mongo: true, redis: true }), "by its host").to.include(foreign("redis.sock"));
    } finally {
      await other.close();
    }
    await listenAt("redis.sock", (socket) => socket.on("data", () => socket.end("+OK\r\n+OK\r\n+PONG\r\n+OK\r\n")));
    expect(await rejectionOf({ mongo: false, redis: true })).to.include(foreign("redis.sock"));
  });

  it("is required of every client, by the store and by Redis", async () => {
    const { mongoUrl = "", redisUrl = "" } = later(await ensureServices({ dataDir, mongo: true, redis: true, logger }));
    const codeOf = async (url: string) => {
      const client = new MongoClient(url, { serverSelectionTimeoutMS: 2_000 });
      try {
        await client.db("test").collection("things").findOne();
        return "none";
      } catch (error) {
        return error instanceof Error && "code" in error ? error.code : error;
      } finally {
        await client.close();
      }
    };
    expect(await codeOf(mongoUrl)).to.equal("none");
    expect(await codeOf(mongoUrl.replace(/:sw-[^@]*/, ":sw-another"))).to.equal(18);
    expect(await codeOf(mongoUrl.replace(/\/\/[^@]*@/, "//").replace(/&.*/, ""))).to.equal(13);

    const ping = async (url: string) => {
      const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0 });
      redis.on("error", () => undefined);
      try {
        return await redis.ping();
      } catch (error) {
        return String(error);
      } finally {
        redis.disconnect();
      }
    };
    expect(await ping(redisUrl)).to.equal("PONG");
    expect(await ping(redisUrl.replace(/\?.*/, ""))).to.include("NOAUTH");
    expect(await ping(redisUrl.replace(/=.*/, "=another"))).to.not.equal("PONG");
  });

  it("is the same for processes that start at once", async () => {
    const script = fileURLToPath(new URL("../support/print-secrets.ts", import.meta.url));
    const outputs = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const child = fork(script, [dataDir]);
        const [message] = await once(child, "message");
        return JSON.stringify(message);
      }),
    );
    const inOne = await Promise.all(Array.from({ length: 20 }, () => openServiceSecrets(dataDir)));
    expect(new Set([...outputs, ...inOne.map((secrets) => JSON.stringify(secrets))]).size).to.equal(1);
    expect((await readdir(dataDir)).filter((name) => name.startsWith("services"))).to.deep.equal(["services.secret"]);
  });

  it("is created for a data folder without one, whose data stay", async () => {
    const use = async <T>(work: (store: Awaited<ReturnType<typeof connectStore>>) => Promise<T>) => {
      const services = await ensureServices({ dataDir, mongo: true, redis: false, logger });
      const store = await connectStore({ url: services.mongoUrl ?? "", db: "test", timeoutMs: 5_000 });
      try {
        return await work(store);
      } finally {
        await store.close();
        await services.close();
      }
    };
    await use(({ db }) => db.collection<{ _id: string }>("things").insertOne({ _id: "kept" }));
    await rm(join(dataDir, "services.secret"));
    await rm(run, { recursive: true });
    expect(await use(({ db }) => db.collection<{ _id: string }>("things").findOne())).to.deep.equal({ _id: "kept" });
  });
});
