import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { scrape } from "../support/prometheus.ts";
import { hostPid, redisPid } from "../support/service-pids.ts";
import { skipTest } from "../support/skip-test.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const TOKEN = "the-operators-own-token";

describe("a part that hangs", function () {
  this.timeout(40_000);
  let test: TestPlatform;
  let client: ApiClient;

  before(async function () {
    if (process.env.MONGODB_URL || process.env.REDIS_URL) return skipTest(this, "only embedded services can be frozen");
    test = await startPlatform({ services: "private", env: { ADMIN_TOKEN: TOKEN } });
    client = makeClient({ url: test.url });
  });
  after(() => test?.close());

  /** What `/readyz` and `/metrics` report of a frozen process before it continues. */
  const observe = async (pid: number, [code, status]: readonly [number, string]) => {
    process.kill(pid, "SIGSTOP");
    try {
      const isNotReady = async () => {
        const ready = await client.get("/readyz"); // it may still be what the last look found
        return ready.at("status") === status ? ready : null;
      };
      const [ready, metrics] = await Promise.all([
        pollUntil(isNotReady, { what: `/readyz as ${status}` }),
        scrape(`${test.url}/metrics`, TOKEN),
      ]);
      expect(ready.status).to.equal(code);
      return { ready, metrics };
    } finally {
      process.kill(pid, "SIGCONT");
    }
  };
  const untilReady = () =>
    pollUntil(async () => (await client.get("/readyz")).at("status") === "ready", { timeoutMs: 15_000 });

  it("is reported by /readyz and /metrics when Redis hangs", async () => {
    await untilReady();
    const { ready, metrics } = await observe(await redisPid(test), [200, "degraded"]);
    expect([ready.at("parts.redis.status"), ready.at("parts.store.status")]).to.deep.equal(["down", "up"]);
    expect(metrics.sum("switchyard_part_up", { part: "redis" })).to.equal(0);
    expect(metrics.sum("switchyard_part_up", { part: "store" })).to.equal(1);
    const depths = metrics.samples.filter(({ name }) => name === "switchyard_queue_jobs");
    expect(depths, "the depth of queues that could not be read").to.deep.equal([]);
    expect(metrics.sum("switchyard_http_request_duration_seconds_count")).to.be.above(0);
    await untilReady();
  });

  it("is reported by /readyz and /metrics when the store hangs", async () => {
    await untilReady();
    const { ready, metrics } = await observe(await hostPid(test.platform.config.dataDir), [503, "not_ready"]);
    expect([ready.at("parts.redis.status"), ready.at("parts.store.status")]).to.deep.equal(["up", "down"]);
    expect(ready.at("parts.vectorIndex.status")).to.equal("down");
    expect(metrics.sum("switchyard_part_up", { part: "store" })).to.equal(0);
    expect(metrics.sum("switchyard_part_up", { part: "redis" })).to.equal(1);
    await untilReady();
  });
});
