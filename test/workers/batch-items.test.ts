import { expect } from "chai";
import type { BatchItemRecord } from "../../src/store/batch-store.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

describe("the items of a batch", () => {
  let test: TestPlatform;
  before(async () => {
    test = await startPlatform({ workers: false });
  });
  after(() => test.close());

  const item = (at: number, group = "one group"): BatchItemRecord => ({
    _id: `job_${at}`,
    tenantId: "ten_1",
    keyId: "key_1",
    surface: "api",
    group,
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
    const room = { items: 2, characters: 1_000 };
    expect(await batches.fill(batch, room)).to.equal(2);
    expect(await batches.fill(batch, room), "by the next worker").to.equal(2);
    expect((await batches.items("bat_1", "batched", 10)).map(({ _id }) => _id)).to.deep.equal(["job_1", "job_2"]);
    expect(await batches.countWaiting("one group", 10)).to.equal(2);
  });

  it("stay within its size, but for one that is larger alone", async () => {
    const { batches } = test.platform.store;
    const sizes = [400, 400, 400, 2_000, 100];
    for (const [at, requestSize] of sizes.entries())
      await batches.insertItem({ ...item(10 + at, "of pictures"), requestSize });
    const room = { items: 10, characters: 1_000 };
    const taken = async (batchId: string) => {
      await batches.fill({ _id: batchId, group: "of pictures" }, room);
      await batches.fill({ _id: batchId, group: "of pictures" }, room); // by the next worker
      return (await batches.items(batchId, "batched", 10)).map(({ requestSize }) => requestSize);
    };
    expect(await taken("bat_2")).to.deep.equal([400, 400]);
    expect(await taken("bat_3")).to.deep.equal([400]);
    expect(await taken("bat_4")).to.deep.equal([2_000]);
    expect(await taken("bat_5")).to.deep.equal([100]);
  });
});
