import { expect } from "chai";
import { forEachConcurrent } from "../../src/lib/for-each-concurrent.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const EVENTS = 5_000;
const ORDERS = 5_000;
/** Waits for orders that come, and for some that never do. */
const WAITS = 400;

describe("thousands of events of one name", function () {
  this.timeout(400_000);
  let test: TestPlatform;
  let client: ApiClient;

  before(async () => {
    test = await startPlatform({ env: { RECONCILE_EVERY_MS: "500" } });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  after(() => test.close());

  it("wake exactly what matches, and start exactly what their triggers say", async () => {
    const { waits, store } = test.platform;
    const tenantId = await tenantOf(test);
    // biome-ignore lint/suspicious/noThenProperty: a condition's branch
    const steps = [{ type: "condition", expression: "true", then: [] }];
    const workflowId = (await client.post("/workflows", { name: "Some", steps })).string("workflowId");
    const when = "event.data.order % 250 == 7";
    const trigger = await client.post("/triggers", { event: "shipped", when, target: { workflowId } });
    const until = new Date(Date.now() + 3_600_000);
    const idOf = (order: number) => `wait_${order}`;
    const orders = Array.from({ length: WAITS }, (_, at) => (at % 2 === 0 ? at * 12 : ORDERS + at));
    for (const order of orders) {
      const event = { name: "shipped", match: { order, status: "done" } };
      await waits.begin({ tenantId, jobId: `job_${order}`, waitId: idOf(order), until, event });
    }
    await forEachConcurrent(Array.from({ length: EVENTS }).keys(), 16, async (order) => {
      // Each third one is sent twice, and a part of them has another status.
      const body = { id: `order-${order}`, data: { order, status: order % 5 === 0 ? "lost" : "done" } };
      expect((await client.post("/events/shipped", body)).status).to.equal(202);
      if (order % 3 === 0) expect((await client.post("/events/shipped", body)).at("duplicate")).to.equal(true);
    });
    await pollUntil(async () => (await store.jobs.countOpen(tenantId, 1)) === 0, {
      timeoutMs: 200_000,
      everyMs: 500,
      what: "the end of all events",
    });
    for (const order of orders) {
      const isCome = order < EVENTS && order % 5 !== 0;
      expect((await store.waits.get(tenantId, idOf(order)))?.status, `${order}`).to.equal(isCome ? "over" : "pending");
    }
    const started = await client.get(`/triggers/${trigger.string("triggerId")}/firings?limit=200`);
    expect(started.at("data")).to.have.length(EVENTS / 250);
    const runs = await client.get(`/workflows/${workflowId}/runs?limit=200`);
    expect(runs.at("data")).to.have.length(EVENTS / 250);
  });
});
