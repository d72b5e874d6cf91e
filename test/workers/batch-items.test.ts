import { expect } from "chai";
import type { BatchItemDocument } from "../../src/store/batch-store.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

describe("the items of a batch", () => {
  let test: TestPlatform;
  before(async () => {
    test = await startPlatform({ workers: false });
  });
  after(() => test.close());

  const item = (at: number): BatchItemDocument => ({
    _id: `job_${at}`,
    tenantId: "ten_1",
    keyId: "key_1",
    surface: "api",
    group: "one group",
    provider: "edge",
    providerKeyId: "platform",
    model: "m",
    requestedModel: "m",
    reason: "asked for",
    request: {},
    state: "waiting",
    expiries: 0,
    logId: `log_${at}`,
    createdAt: new Date(),
    expireAt: new Date(Date.now() + 3_600_000),
  });

  it("stay within its limit when a worker takes it over, however many wait", async () => {
    const { batches } = test.platform.store;
    for (const at of [1, 2, 3, 4]) await batches.insertItem(item(at));
    const batch = { _id: "bat_1", group: "one group" };
    expect(await batches.fill(batch, 2)).to.equal(2);
    expect(await batches.fill(batch, 2), "by the next worker").to.equal(2);
    expect((await batches.items("bat_1", "batched", 10)).map(({ _id }) => _id)).to.deep.equal(["job_1", "job_2"]);
    expect(await batches.countWaiting("one group", 10)).to.equal(2);
  });
});
