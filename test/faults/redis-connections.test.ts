import { once } from "node:events";
import { expect } from "chai";
import { withDisposables } from "../../src/lib/disposables.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { openRedis } from "../../src/store/redis/redis.ts";
import { startRedis } from "../support/redis-servers.ts";

describe("a connection to Redis that waits for its next attempt", () => {
  it("ends when it is closed, as BullMQ waits for that", () =>
    withDisposables(async (disposables) => {
      const server = await startRedis(disposables);
      const logger = makeLogger({ level: "silent", name: "test" });
      const redis = await openRedis({ url: `redis://127.0.0.1:${server.port}`, prefix: "x", logger });
      const consumer = redis.consumer();
      await consumer.ping();
      const reconnecting = once(consumer, "reconnecting");
      await server.kill();
      await reconnecting;
      const waiting = consumer.ping().catch((error: Error) => error.message);
      const ended = once(consumer, "end");
      consumer.disconnect();
      await ended;
      expect(consumer.status).to.equal("end");
      expect(await waiting).to.equal("Connection is closed.");
      await redis.close();
      await disposables.close();
    }));
});
