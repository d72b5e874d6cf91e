import { expect } from "chai";
import { ofTenant } from "../../src/store/collection.ts";
import type { IdempotencyRecord } from "../../src/store/idempotency-store.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const tenantId = "ten_idempotency";
const at = (second: number) => new Date(Date.UTC(2099, 0, 1, 0, 0, second));
const reply = { status: 202, headers: {}, body: "{}", ignored: [] };

describe("the records of idempotent calls", () => {
  let test: TestPlatform;
  let made = 0;
  before(async () => {
    test = await startPlatform({ workers: false });
  });
  after(() => test.close());

  /** Two records of calls that run; their tokens are the same, so that only the id distinguishes them. */
  const begin = async () => {
    made += 1;
    const records = ["other", "own"].map((name): IdempotencyRecord => {
      const call = { fingerprint: "f", token: `token ${made}`, jobId: "job_1", isDone: false };
      return { _id: `${name} ${made}`, tenantId, ...call, leaseUntil: at(0), expiresAt: at(60) };
    });
    const { idempotency } = test.platform.store;
    for (const record of records) expect(await idempotency.insert(record)).to.equal(true);
    const [other, own] = records;
    if (!other || !own) return expect.fail("there are two");
    const find = (id: string) => idempotency.find(tenantId, id);
    const expectUnchanged = async (record: IdempotencyRecord) => {
      expect(await find(record._id)).to.deep.equal(record);
    };
    return { idempotency, own, other, find, expectUnchanged, foreign: { ...own, token: "a former holder's" } };
  };

  it("are held longer by their holder alone, and only while they run", async () => {
    const { idempotency, own, other, foreign, find, expectUnchanged } = await begin();
    await idempotency.renew(foreign, at(10));
    await expectUnchanged(own);
    await idempotency.renew(own, at(20));
    await expectUnchanged({ ...own, leaseUntil: at(20) });
    await expectUnchanged(other);
    await idempotency.keep(own, reply, true);
    await idempotency.renew(own, at(30));
    expect((await find(own._id))?.leaseUntil).to.deep.equal(at(20));
  });

  it("keep the first final answer of their holder, and until then the last provisional one", async () => {
    const { idempotency, own, other, foreign, expectUnchanged } = await begin();
    await idempotency.keep(foreign, reply, true);
    await expectUnchanged(own);
    await idempotency.keep(own, reply, false);
    await expectUnchanged({ ...own, reply });
    await idempotency.keep(own, undefined, true);
    await expectUnchanged({ ...own, reply, isDone: true });
    await idempotency.keep(own, { ...reply, status: 500 }, true);
    await expectUnchanged({ ...own, reply, isDone: true });
    await expectUnchanged(other);
  });

  it("keep a large text apart, of the holder whose answer counts", async () => {
    const { idempotency, own, foreign, find } = await begin();
    const large = (sign: string) => ({ ...reply, body: sign.repeat(300 << 10) });
    await idempotency.keep(foreign, large("f"), true);
    await idempotency.keep(own, large("a"), false);
    await idempotency.keep(own, large("b"), true);
    const record = await find(own._id);
    expect(record).to.deep.include({ isDone: true, reply: { ...reply, body: null }, largeBytes: 300 << 10 });
    expect(await idempotency.text(own)).to.equal(large("b").body);
    expect(await idempotency.text({ ...own, tenantId: "ten_other" })).to.equal(undefined);
  });

  it("are forgotten for their holder alone, and only while they run", async () => {
    const { idempotency, own, other, foreign, find, expectUnchanged } = await begin();
    await idempotency.release(foreign);
    await expectUnchanged(own);
    await idempotency.release(own);
    expect(await find(own._id)).to.equal(null);
    await idempotency.keep(other, reply, true);
    await idempotency.release(other);
    await expectUnchanged({ ...other, reply, isDone: true });
  });

  it("are taken over once, from the expected holder only", async () => {
    const { idempotency, own, other, expectUnchanged } = await begin();
    const next = { ...own, token: "the next holder's" };
    expect(await idempotency.takeOver(next, "a former holder's")).to.equal(false);
    expect(await idempotency.takeOver(next, own.token)).to.equal(true);
    expect(await idempotency.takeOver({ ...own, token: "a third one's" }, own.token)).to.equal(false);
    await expectUnchanged(next);
    await expectUnchanged(other);
  });

  it("belong to a tenant: a filter without a tenant, or with another tenant, is refused", async () => {
    const { idempotency, own } = await begin();
    expect(await idempotency.find("ten_another", own._id)).to.equal(null);
    expect(() => ofTenant("", { _id: own._id })).to.throw(TypeError, "needs the tenant's id");
    expect(ofTenant(tenantId, { a: 1, tenantId: "ten_another" })).to.deep.equal({ a: 1, tenantId });
    expect(ofTenant(tenantId)).to.deep.equal({ tenantId });
  });
});
