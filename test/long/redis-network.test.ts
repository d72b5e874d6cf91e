import dns from "node:dns";
import { expect } from "chai";
import { type Disposables, withDisposables } from "../../src/lib/disposables.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startRedis, startReplicated, swapRoles } from "../support/redis-servers.ts";
import { makeScriptedJobs } from "../support/scripted-queue.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";

/** Longest time until the product has healed by itself, in ms. */
const HEALED_WITHIN_MS = 20_000;

/** Opens what a test needs, and closes it in reverse. */
function opened<T>(open: (disposables: Disposables) => Promise<T>): Promise<T & { close(): Promise<void> }> {
  return withDisposables(async (disposables) => ({ ...(await open(disposables)), close: disposables.close }));
}

describe("a start while Redis is slow", function () {
  this.timeout(60_000);

  const startBehind = (before: (proxy: TcpProxy) => void, host = "127.0.0.1") =>
    opened(async (disposables) => {
      const redis = await startRedis(disposables);
      const proxy = await startTcpProxy(redis.port);
      disposables.add(() => proxy.close());
      before(proxy);
      const test = await startPlatform({ workers: false, env: { REDIS_URL: `redis://${host}:${proxy.port}` } });
      disposables.add(() => test.close());
      return { client: makeClient({ url: test.url, key: test.keys.owner }) };
    });
  const expectJobs = async ({ client, close }: { client: ApiClient; close(): Promise<void> }) => {
    try {
      const headers = { prefer: "respond-async" };
      const answer = await pollUntil(async () => {
        const answer = await client.post("/rag/ingest", { content: "Slow, but there." }, { headers });
        return answer.status === 202 ? answer : null;
      });
      expect(answer.status).to.equal(202);
      expect((await client.get("/readyz")).at("parts.redis")).to.include({ status: "up" });
    } finally {
      await close();
    }
  };

  for (const skip of [0, 1, 2]) {
    it(`takes jobs when INFO number ${skip + 1} takes 3.5 s`, async () => {
      await expectJobs(await startBehind((proxy) => proxy.holdOnce({ sent: /\binfo\r\n/i, skip, ms: 3_500 })));
    });
  }

  it("takes jobs when a name takes 6 s to be resolved, as with a dead name server", async () => {
    const { lookup } = dns;
    const slow = (...[name, ...rest]: Parameters<typeof lookup>) =>
      name === "redis.test" ? setTimeout(() => lookup("127.0.0.1", ...rest), 6_000) : lookup(name, ...rest);
    try {
      Object.assign(dns, { lookup: slow });
      await expectJobs(await startBehind(() => undefined, "redis.test"));
    } finally {
      Object.assign(dns, { lookup });
    }
  });
});

describe("a network that loses Redis", function () {
  this.timeout(90_000);
  const jobs = makeScriptedJobs();
  const runs = new Map<string, number>();
  let test: TestPlatform;
  let client: ApiClient;
  let proxy: TcpProxy;
  let servers: Awaited<ReturnType<typeof startReplicated>>;
  let close: () => Promise<void>;
  let tenantId: string;

  before(async () => {
    ({ test, proxy, servers, close } = await opened(async (disposables) => {
      const servers = await startReplicated(disposables);
      const proxy = await startTcpProxy(servers[0].port);
      disposables.add(() => proxy.close());
      const env = { REDIS_URL: `redis://127.0.0.1:${proxy.port}`, JOB_LEASE_MS: "2000", RECONCILE_EVERY_MS: "300" };
      const test = await startPlatform({ extra: [jobs.work], env });
      disposables.add(() => test.close());
      return { test, proxy, servers };
    }));
    client = makeClient({ url: test.url, key: test.keys.owner });
    tenantId = await test.platform.tenancy.ensureTenant("first");
  });
  after(() => close());

  /** Submits one job; its id, or null when it is refused. */
  const submit = async (): Promise<string | null> => {
    const run = async ({ jobId }: { jobId: string }) => runs.set(jobId, (runs.get(jobId) ?? 0) + 1).size;
    try {
      return (await jobs.submit(test.platform, tenantId, run))._id;
    } catch (error) {
      expect(error).to.have.property("code", "unavailable");
      return null;
    }
  };
  const submitUntil = async (isEnough: (jobId: string | null) => boolean, what: string): Promise<string[]> => {
    const accepted: string[] = [];
    await pollUntil(
      async () => {
        const jobId = await submit();
        if (jobId !== null) accepted.push(jobId);
        return isEnough(jobId);
      },
      { timeoutMs: HEALED_WITHIN_MS, everyMs: 50, what },
    );
    return accepted;
  };
  const untilStatus = (status: string) =>
    pollUntil(
      async () => {
        const ready = await client.get("/readyz");
        return ready.at("status") === status ? ready : null;
      },
      { timeoutMs: HEALED_WITHIN_MS, what: `/readyz as ${status}` },
    );
  const expectEnded = async (accepted: readonly string[]) => {
    const states = () => test.platform.jobs.statesOf(tenantId, accepted);
    await pollUntil(async () => [...(await states()).values()].every((state) => state === "completed"), {
      timeoutMs: HEALED_WITHIN_MS,
      what: "the end of what was accepted",
    });
    expect((await states()).size).to.equal(accepted.length);
    expect(accepted.map((jobId) => runs.get(jobId))).to.deep.equal(accepted.map(() => 1));
  };

  it("heals after a failover behind one name, by which the old primary lives on as a replica", async () => {
    await untilStatus("ready");
    const [old, next] = servers;
    const accepted = await submitUntil((jobId) => jobId !== null, "a job");
    await swapRoles(old, next);
    accepted.push(...(await submitUntil((jobId) => jobId === null, "a refusal")));
    const degraded = await untilStatus("degraded");
    expect([degraded.status, degraded.at("parts.redis.status")]).to.deep.equal([200, "down"]);
    proxy.leadTo(next.port);
    accepted.push(...(await submitUntil((jobId) => jobId !== null, "the new primary")));
    await untilStatus("ready");
    await expectEnded(accepted);
  });

  it("heals after connections have died without a word", async () => {
    const accepted = await submitUntil((jobId) => jobId !== null, "a job");
    proxy.blackHole();
    accepted.push(...(await submitUntil((jobId) => jobId === null, "a refusal")));
    await untilStatus("degraded");
    proxy.leadTo(servers[1].port);
    accepted.push(...(await submitUntil((jobId) => jobId !== null, "the return of Redis")));
    await untilStatus("ready");
    await expectEnded(accepted);
  });

  it("says so while the connections that wait for jobs are dead, and heals", async () => {
    proxy.blackHole(/bzpopmin/i);
    const degraded = await untilStatus("degraded");
    expect(degraded.string("parts.redis.detail")).to.match(/^\d+ of \d+ connections to Redis are lost$/);
    const accepted = await submitUntil((jobId) => jobId !== null, "a job on the connection that lives");
    proxy.leadTo(servers[1].port);
    await untilStatus("ready");
    await expectEnded(accepted);
  });
});
