import { expect } from "chai";
import { newId } from "../../src/lib/ids.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const month = "2026-11";
const later = () => new Date(Date.now() + 60_000);

describe("the budgets' store", () => {
  let test: TestPlatform;
  before(async () => {
    test = await startPlatform({ workers: false });
  });
  after(() => test.close());

  /** A tenant with 100 of a budget, and two months beside its own that nothing may change: another's, and the one before. */
  const begin = async () => {
    const { budgets } = test.platform.store;
    const [tenantId, other] = [newId("tenant"), newId("tenant")];
    const own = { limitNanoUsd: 200, leftNanoUsd: 100 };
    const beside = [
      [other, month],
      [tenantId, "2026-10"],
    ] as const;
    for (const [tenant, at] of [...beside, [tenantId, month] as const])
      expect(await budgets.begin(tenant, at, own)).to.equal(true);
    const find = (tenant = tenantId, at = month) => budgets.find(tenant, at);
    const expectFound = async (changes: object) => {
      const { settled: _, ...found } = (await find()) ?? expect.fail("there is none");
      expect(found).to.deep.equal({ _id: `${tenantId}:${month}`, tenantId, month, ...own, ...changes });
      for (const [tenant, at] of beside)
        expect(await find(tenant, at)).to.deep.equal({ _id: `${tenant}:${at}`, tenantId: tenant, month: at, ...own });
    };
    const take = (nanoUsd: number, restUntil?: Date) =>
      budgets.take(tenantId, month, restUntil === undefined ? { nanoUsd } : { nanoUsd, restUntil });
    let number = 0;
    const settle = (takenNanoUsd: number, costNanoUsd: number, isRest = false) =>
      budgets.settle(tenantId, month, { takenNanoUsd, costNanoUsd, isRest, writer: "w1", number: ++number });
    return { budgets, tenantId, find, expectFound, take, settle };
  };

  it("starts a month once for each tenant", async () => {
    const { budgets, tenantId, expectFound } = await begin();
    expect(await budgets.begin(tenantId, month, { limitNanoUsd: 7, leftNanoUsd: 7 })).to.equal(false);
    await expectFound({});
    expect(await budgets.find(newId("tenant"), month)).to.equal(null);
  });

  it("takes the rest and no more, and settles it to the real cost", async () => {
    const { expectFound, take, settle } = await begin();
    expect(await take(101)).to.equal(false);
    await expectFound({});
    expect(await take(60)).to.equal(true);
    await expectFound({ leftNanoUsd: 40, reservedNanoUsd: 60 });
    expect(await take(40)).to.equal(true);
    await expectFound({ leftNanoUsd: 0, reservedNanoUsd: 100 });
    await settle(60, 25);
    await expectFound({ leftNanoUsd: 35, reservedNanoUsd: 40 });
    await settle(40, 80);
    await expectFound({ leftNanoUsd: -5, reservedNanoUsd: 0 });
  });

  it("settles once what is written twice, and what comes after the next one of its writer not at all", async () => {
    const { budgets, tenantId, expectFound, take } = await begin();
    await take(60);
    const write = (number: number, writer = "w1", takenNanoUsd = 20) =>
      budgets.settle(tenantId, month, { takenNanoUsd, costNanoUsd: 5, isRest: false, writer, number });
    await write(1);
    await write(1);
    await expectFound({ leftNanoUsd: 55, reservedNanoUsd: 40 });
    await write(3);
    await write(2);
    await expectFound({ leftNanoUsd: 70, reservedNanoUsd: 20 });
    await write(1, "w2");
    await expectFound({ leftNanoUsd: 85, reservedNanoUsd: 0 });
  });

  it("gives the rest to one call at a time, until that is settled or its time is over", async () => {
    const { expectFound, take, settle } = await begin();
    const restHeldUntil = later();
    expect(await take(101, restHeldUntil)).to.equal(false);
    expect(await take(10, restHeldUntil)).to.equal(true);
    await expectFound({ leftNanoUsd: 90, reservedNanoUsd: 10, restHeldUntil });
    expect(await take(10, later()), "while another call holds it").to.equal(false);
    expect(await take(10), "beside it").to.equal(true);
    await settle(10, 10);
    await expectFound({ leftNanoUsd: 80, reservedNanoUsd: 10, restHeldUntil });
    await settle(10, 10, true);
    await expectFound({ leftNanoUsd: 80, reservedNanoUsd: 0 });
    expect(await take(10, new Date(Date.now() - 1))).to.equal(true);
    expect(await take(10, restHeldUntil), "after its time").to.equal(true);
    await expectFound({ leftNanoUsd: 60, reservedNanoUsd: 20, restHeldUntil });
  });

  it("moves the limit once, and the rest with it", async () => {
    const { budgets, expectFound, find, take } = await begin();
    const seen = (await find()) ?? expect.fail("there is none");
    await take(30);
    await budgets.moveLimit(seen, 250);
    await budgets.moveLimit(seen, 250);
    await expectFound({ limitNanoUsd: 250, leftNanoUsd: 120, reservedNanoUsd: 30 });
  });
});
