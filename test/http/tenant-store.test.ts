import { expect } from "chai";
import { newId } from "../../src/lib/ids.ts";
import type { TenantStore } from "../../src/store/tenant-store.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

describe("the records of tenants", () => {
  let test: TestPlatform;
  let tenants: TenantStore;
  before(async () => {
    test = await startPlatform({ workers: false });
    tenants = test.platform.store.tenants;
  });
  after(() => test.close());

  const make = (name: string) => ({ _id: newId("tenant"), name, createdAt: new Date() });

  it("are made once for a name, also by several processes at the same time", async () => {
    const made = await Promise.all(Array.from({ length: 10 }, () => tenants.ensure(make("raced"))));
    expect(new Set(made.map(({ _id }) => _id)).size).to.equal(1);
    expect((await tenants.ensure(make("raced")))._id).to.equal(made[0]?._id);
    const insertion = await tenants.insert(make("raced")).then(
      () => "inserted",
      (error: { code: number }) => error.code,
    );
    expect(insertion).to.equal(11_000);
  });

  it("keep budget and fallbacks for the tenant that they were set for", async () => {
    const [one, other] = [await tenants.ensure(make("one")), await tenants.ensure(make("other"))];
    const fallbacks = [{ model: "a", models: ["b"] }];
    await tenants.setBudget(one._id, 5);
    await tenants.setFallbacks(one._id, fallbacks);
    expect(await tenants.find(one._id)).to.deep.equal({ ...one, monthlyBudgetNanoUsd: 5, fallbacks });
    await tenants.setBudget(one._id, null);
    expect(await tenants.findByName("one")).to.deep.equal({ ...one, fallbacks });
    expect(await tenants.find(other._id)).to.deep.equal(other);
  });
});
