import { once } from "node:events";
import { expect } from "chai";
import { keepReconciled } from "../../workers/maintenance.ts";
import { startWorkers } from "../../workers/start-workers.ts";
import { makeScriptedJobs } from "../support/scripted-queue.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { startToolServer, type ToolServer } from "../support/tool-server.ts";

describe("a worker's sweeps", function () {
  this.timeout(60_000);
  const jobs = makeScriptedJobs();
  let site: ToolServer;
  let test: TestPlatform;
  let tenantId: string;
  before(async () => {
    site = await startToolServer();
    const env = { FETCH_ALLOW_ORIGINS: site.origin, RECONCILE_EVERY_MS: "100" };
    test = await startPlatform({ workers: false, extra: [jobs.work], env });
    tenantId = await tenantOf(test);
  });
  after(async () => {
    await test?.close();
    await site?.close();
  });

  it("do not keep it from stopping what runs when its grace is over", async () => {
    const order: string[] = [];
    const calls = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    site.on("/slow", async (_, response) => {
      calls[0]?.resolve();
      response.once("close", () => order.push("the receiver has answered"));
      await calls[1]?.promise;
      response.writeHead(204).end();
    });
    const workers = await startWorkers(test.platform, {
      extra: [jobs.work],
      queues: ["scripted"],
      concurrencyFactor: 1,
      shutdownGraceMs: 0,
    });
    const { _id: ended } = await jobs.submit(test.platform, tenantId, async () => ({}));
    await test.platform.callbacks.expect({ tenantId }, ended, `${site.origin}/slow`);
    await calls[0]?.promise; // a sweep waits for the receiver
    const begun = Promise.withResolvers<void>();
    await jobs.submit(test.platform, tenantId, async ({ signal }) => {
      begun.resolve();
      await once(signal, "abort");
      order.push(signal.reason.message);
      calls[1]?.resolve();
      throw signal.reason;
    });
    await begun.promise;
    await workers.close();
    // The job may have begun a second time just before, and is stopped for the same reason.
    expect([...new Set(order)]).to.deep.equal(["The worker is shutting down.", "the receiver has answered"]);
  });

  it("come to the others when one of them fails", async () => {
    const { platform } = test;
    const swept = Promise.withResolvers<void>();
    const broken = { ...platform.approvals, sweep: () => Promise.reject(new Error("a broken approval")) };
    const vectorStores = { ...platform.vectorStores, sweep: async () => swept.resolve() };
    const reconciling = keepReconciled({ ...platform, approvals: broken, vectorStores });
    await swept.promise;
    await reconciling.stop();
  });
});
