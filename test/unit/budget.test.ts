import { mock } from "node:test";
import { expect } from "chai";
import { type BudgetView, makeBudgets, requireLeft } from "../../src/gateway/money/budget.ts";
import type { CostBounds } from "../../src/gateway/money/prices.ts";
import { AppError, unavailable } from "../../src/lib/errors.ts";
import { newId } from "../../src/lib/ids.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { makeBudgetStore } from "../../src/store/budget-store.ts";
import { makeTenantStore } from "../../src/store/tenant-store.ts";
import { makeUsageStore } from "../../src/store/usage-store.ts";
import { pollUntil } from "../support/poll-until.ts";
import { useStore } from "../support/use-store.ts";

const USD = 1e9;
const month = "2040-01";
const now = Date.parse("2040-01-15T00:00:00Z");
/** How long a call may hold the rest of a budget, in ms. */
const REST_MS = 900_000;
const { signal } = new AbortController();

/** A call that costs at most so much, and is worth making from so much on; in USD. */
const callOf =
  (mostUsd: number, leastUsd = mostUsd) =>
  (): CostBounds => ({
    mostNanoUsd: mostUsd * USD,
    askedNanoUsd: mostUsd * USD,
    leastNanoUsd: leastUsd * USD,
    answerFor: () => 0,
    ...{ asked: 0, least: 0, priceOf: () => mostUsd * USD },
  });
const free = callOf(0);
const errorOf = (work: unknown) =>
  Promise.resolve(work).then(
    () => expect.fail("it was not refused"),
    (error: unknown) => error,
  );

describe("budgets", () => {
  const open = useStore();
  let store: Parameters<typeof makeBudgets>[0]["store"];
  before(() => {
    store = { budgets: makeBudgetStore(open()), tenants: makeTenantStore(open()), usage: makeUsageStore(open()) };
  });
  beforeEach(() => mock.timers.enable({ apis: ["Date"], now }));
  afterEach(() => mock.timers.reset());

  /** Budgets as one process has them, over a store in which these functions are others. */
  const openProcess = (own: Partial<typeof store.budgets> = {}) => {
    let refusals = 0;
    const logged: string[] = [];
    const destination = { write: (line: string) => void logged.push(line) };
    const budgets = makeBudgets({
      store: { ...store, budgets: { ...store.budgets, ...own } },
      logger: makeLogger({ level: "info", name: "test", destination }),
      onRejection: () => (refusals += 1),
    });
    return { ...budgets, refusals: () => refusals, logged };
  };
  type Process = ReturnType<typeof openProcess>;
  const tenant = async (usd: number | null, made: { rootTenantId?: string } = {}) => {
    const tenantId = newId("tenant");
    await store.tenants.insert({ _id: tenantId, name: tenantId, createdAt: new Date(), ...made });
    await openProcess().set(tenantId, usd);
    return tenantId;
  };
  /** A call that got what it needs. */
  const begin = async (budgets: Process, tenantId: string, call: () => CostBounds) =>
    (await budgets.reserve({ tenantId }, call, signal)) ?? expect.fail("nothing was set aside");
  const left = async (budgets: Process, tenantId: string) => {
    await budgets.flush();
    const { leftUsd, reservedUsd } = (await budgets.view(tenantId)) ?? expect.fail("there is no budget");
    return [leftUsd, reservedUsd];
  };

  it("count the month's cost, the reservations, and at last the real cost of a call", async () => {
    const [budgets, tenantId] = [openProcess(), await tenant(10)];
    const counts = {
      tenantId,
      surface: "api",
      keyId: "key_1",
      requests: 1,
      errors: 0,
      inputTokens: 1,
      outputTokens: 1,
    };
    const days = { "2039-12-31": 9, "2040-01-01": 1, "2040-01-31": 0.5, "2040-02-01": 9 };
    const rows = Object.entries(days).map(([day, usd]) => ({ ...counts, day, model: day, costNanoUsd: usd * USD }));
    await store.usage.add({ writer: "test", number: 1 }, rows);
    const view = { month, limitUsd: 10, leftUsd: 8.5, reservedUsd: 0 };
    expect(await budgets.view(tenantId)).to.deep.equal(view);
    const call = callOf(3);
    const reservation = await begin(budgets, tenantId, call);
    expect(reservation).to.deep.include({ nanoUsd: 3 * USD });
    expect(reservation.bounds.mostNanoUsd).to.equal(3 * USD);
    expect(await budgets.view(tenantId)).to.deep.equal({ ...view, leftUsd: 5.5, reservedUsd: 3 });
    reservation.settle(1 * USD);
    expect(await left(budgets, tenantId)).to.deep.equal([7.5, 0]);
    const last = await budgets.reserveForLater(tenantId, callOf(7.5));
    expect(last, "to the last cent, which is no rest").to.deep.equal([{ month, nanoUsd: 7.5 * USD, tenantId }]);
    expect(await left(budgets, tenantId)).to.deep.equal([0, 7.5]);
  });

  it("reserve nothing for a tenant without one, nor for a free call", async () => {
    const [budgets, without, poor] = [openProcess(), await tenant(null), await tenant(0)];
    const unasked = () => expect.fail("asked what the call may cost");
    expect(await budgets.view(without)).to.equal(null);
    expect(await budgets.reserve({ tenantId: without }, unasked, signal)).to.equal(undefined);
    expect(await openProcess().reserve({ tenantId: without }, callOf(1), signal)).to.equal(undefined);
    expect(await budgets.reserveForLater(without, unasked)).to.equal(undefined);
    expect(await budgets.reserve({ tenantId: poor }, free, signal)).to.equal(undefined);
    expect(await budgets.reserve({ tenantId: poor }, free, signal), "once it is read").to.equal(undefined);
    expect(await budgets.reserveForLater(poor, free)).to.equal(undefined);
  });

  it("are shown as the one with less left, the tenant's own or its root's", async () => {
    const rootTenantId = await tenant(4);
    const [smaller, larger] = [await tenant(3, { rootTenantId }), await tenant(10, { rootTenantId })];
    expect(await left(openProcess(), smaller)).to.deep.equal([3, 0]);
    expect(await left(openProcess(), larger)).to.deep.equal([4, 0]);
  });

  it("take of a tenant's own and of its root's, or of neither", async () => {
    const [budgets, rootTenantId] = [openProcess(), await tenant(4)];
    const tenantId = await tenant(10, { rootTenantId });
    const short = callOf(1);
    const amounts = await budgets.reserveForLater(tenantId, short);
    const amount = { month, nanoUsd: 1 * USD };
    expect(amounts).to.deep.equal([
      { ...amount, tenantId },
      { ...amount, tenantId: rootTenantId },
    ]);
    await budgets.settleLater(tenantId, amounts ?? [], 0.5 * USD);
    const reservation = await begin(budgets, tenantId, callOf(7, 0.5));
    expect(reservation.nanoUsd, "the less of both").to.equal(3.5 * USD);
    reservation.settle(1 * USD);
    expect(await left(budgets, rootTenantId)).to.deep.equal([2.5, 0]);
    const error = { code: "budget_exhausted" };
    expect(await errorOf(budgets.reserve({ tenantId }, callOf(3), signal))).to.deep.include(error);
    expect(await errorOf(budgets.reserveForLater(tenantId, callOf(3)))).to.deep.include(error);
    expect(await left(budgets, rootTenantId)).to.deep.equal([2.5, 0]);
    await budgets.set(rootTenantId, null);
    expect(await left(budgets, tenantId)).to.deep.equal([8.5, 0]);
  });

  it("settle the one amount that an earlier release has noted", async () => {
    const [budgets, tenantId] = [openProcess(), await tenant(10)];
    await budgets.reserveForLater(tenantId, callOf(3));
    await budgets.settleLater(tenantId, { month, nanoUsd: 3 * USD }, 1 * USD);
    expect(await left(budgets, tenantId)).to.deep.equal([9, 0]);
  });

  it("can be changed, lifted and set again, and keep what was spent", async () => {
    const [budgets, tenantId] = [openProcess(), await tenant(10)];
    await begin(budgets, tenantId, callOf(4));
    await budgets.set(tenantId, 2.000_000_001);
    expect(await budgets.view(tenantId)).to.deep.equal({
      month,
      limitUsd: 2.000_000_001,
      leftUsd: -1.999_999_999,
      reservedUsd: 4,
    });
    await budgets.set(tenantId, null);
    expect(await budgets.view(tenantId)).to.equal(null);
    await budgets.set(tenantId, 10);
    expect(await left(budgets, tenantId)).to.deep.equal([6, 4]);
  });

  it("begin a month once, whichever process comes first", async () => {
    const [processes, tenantId] = [[openProcess(), openProcess(), openProcess()], await tenant(10)];
    await Promise.all(processes.map((budgets) => begin(budgets, tenantId, callOf(3))));
    expect(await left(openProcess(), tenantId)).to.deep.equal([1, 9]);
  });

  for (const { title, taken, rest, says } of [
    { title: "report what is left", taken: 0, rest: "has 1 USD left; this call needs 2 USD.", says: [1, 0] },
    {
      title: "report what calls under way hold",
      taken: 0.5,
      rest: "has 0.5 USD left, and 0.5 USD are set aside for calls under way; this call needs 2 USD.",
      says: [0.5, 0.5],
    },
  ]) {
    it(`${title} when there is no room`, async () => {
      const [budgets, tenantId] = [openProcess(), await tenant(1)];
      if (taken > 0) await begin(openProcess(), tenantId, callOf(taken));
      const [leftUsd, reservedUsd] = says;
      const error = {
        code: "budget_exhausted",
        message: `The budget of 1 USD for 2040-01 ${rest}`,
        details: { month, limitUsd: 1, leftUsd, reservedUsd, neededUsd: 2 },
      };
      expect(await errorOf(budgets.reserve({ tenantId }, callOf(2), signal))).to.deep.include(error);
      expect(await errorOf(budgets.reserveForLater(tenantId, callOf(2)))).to.deep.include(error);
      expect(budgets.refusals()).to.equal(2);
    });
  }

  it("report that they are used up, at a call and at a submission", async () => {
    const [budgets, tenantId] = [openProcess(), await tenant(1)];
    (await begin(budgets, tenantId, callOf(1))).settle(1 * USD);
    await budgets.flush();
    const error = { code: "budget_exhausted", message: "The budget of 1 USD for 2040-01 is used up." };
    expect(await errorOf(budgets.reserve({ tenantId }, callOf(1), signal))).to.deep.include(error);
    const usedUp: BudgetView = { month, limitUsd: 1, leftUsd: 0, reservedUsd: 0 };
    expect(() => requireLeft(usedUp))
      .to.throw(AppError)
      .that.deep.includes({ ...error, details: usedUp });
    for (const open of [null, { ...usedUp, leftUsd: 0.5 }, { ...usedUp, leftUsd: -1, reservedUsd: 1.5 }])
      expect(() => requireLeft(open)).to.not.throw();
  });

  it("give their rest to one call at a time, for 15 minutes at most", async () => {
    const [one, other, tenantId] = [openProcess(), openProcess(), await tenant(1)];
    const long = callOf(3, 0.5);
    const first = await begin(one, tenantId, long);
    expect(first.nanoUsd).to.equal(1 * USD);
    first.settle(0.5 * USD);
    await one.flush();
    const amount = await other.reserveForLater(tenantId, long);
    expect(amount).to.deep.equal([{ month, nanoUsd: 0.5 * USD, isRest: true, tenantId }]);
    await one.set(tenantId, 2);
    expect(await errorOf(one.reserve({ tenantId }, long, signal)), "while another has it").to.be.instanceOf(AppError);
    mock.timers.setTime(now + REST_MS);
    expect(await errorOf(one.reserve({ tenantId }, long, signal)), "until the rest is free again").to.include({
      code: "budget_exhausted",
    });
    mock.timers.setTime(now + REST_MS + 1);
    expect((await begin(one, tenantId, long)).nanoUsd).to.equal(1 * USD);
    await other.settleLater(tenantId, amount ?? expect.fail("nothing was set aside"), 0);
    const whole = await openProcess().reserveForLater(tenantId, callOf(0.25));
    expect(whole, "no rest").to.deep.equal([{ month, nanoUsd: 0.25 * USD, tenantId }]);
  });

  it("let a call wait for another one of its process, and apply a limit that was set meanwhile", async () => {
    const [budgets, tenantId] = [openProcess(), await tenant(1)];
    const holder = await begin(budgets, tenantId, callOf(1));
    const [waiting, hopeless] = [begin(budgets, tenantId, callOf(3)), errorOf(begin(budgets, tenantId, callOf(9)))];
    await budgets.view(tenantId);
    await openProcess().set(tenantId, 5);
    await budgets.set(tenantId, 5);
    holder.settle(0);
    const waited = await waiting;
    expect(waited.nanoUsd).to.equal(3 * USD);
    waited.settle(3 * USD);
    expect(await hopeless)
      .to.have.property("message")
      .that.matches(/of 5 USD .* has 2 USD left; this call needs 9 USD/);
    expect(await left(budgets, tenantId)).to.deep.equal([2, 0]);
  });

  it("apply to a waiting call also when they are lifted meanwhile", async () => {
    const [budgets, tenantId] = [openProcess(), await tenant(1)];
    const holder = await begin(budgets, tenantId, callOf(1));
    const waiting = begin(budgets, tenantId, callOf(1));
    await budgets.set(tenantId, null);
    holder.settle(0);
    expect((await waiting).nanoUsd).to.equal(1 * USD);
  });

  it("wake a waiting call when there may be room, and do not poll for it", async () => {
    let looks = 0;
    const find = (...query: Parameters<typeof store.budgets.find>) => {
      looks += 1;
      return store.budgets.find(...query);
    };
    const [budgets, tenantId] = [openProcess({ find }), await tenant(1)];
    const holder = await begin(budgets, tenantId, callOf(1));
    looks = 0;
    const waiting = begin(budgets, tenantId, callOf(1));
    for (let n = 0; n < 20; n += 1) await left(openProcess(), tenantId);
    expect(looks, "before the other has ended").to.equal(1);
    holder.settle(0);
    expect((await waiting).nanoUsd).to.equal(1 * USD);
    expect(looks).to.equal(2);
  });

  it("let 32 calls of a process wait, each until its caller disconnects", async () => {
    const [budgets, tenantId] = [openProcess(), await tenant(1)];
    const holder = await begin(budgets, tenantId, callOf(1));
    const leaving = new AbortController();
    const ends = Array.from({ length: 33 }, () => errorOf(budgets.reserve({ tenantId }, callOf(1), leaving.signal)));
    await pollUntil(() => budgets.refusals() === 1, { what: "the call that may not wait" });
    leaving.abort();
    const errors = await Promise.all(ends);
    expect(errors.filter((error) => error instanceof AppError && error.code === "budget_exhausted")).to.have.lengthOf(
      1,
    );
    holder.settle(0);
    await budgets.flush();
  });

  it("give up after a hundred conflicts with other processes", async () => {
    const tenantId = await tenant(1);
    const error = { code: "unavailable", message: "The budget changes too often right now.", retryable: true };
    let attempts = 0;
    const take = async () => {
      attempts += 1;
      expect(attempts).to.be.at.most(100);
      return false;
    };
    for (const call of [callOf(0.5), callOf(2, 0.5)]) {
      attempts = 0;
      expect(await errorOf(openProcess({ take }).reserve({ tenantId }, call, signal))).to.include(error);
      expect(attempts).to.equal(100);
    }
    let moves = 0;
    const moveLimit = async () => {
      moves += 1;
      expect(moves).to.be.at.most(4);
    };
    const elsewhere = openProcess({ moveLimit });
    await elsewhere.set(tenantId, 3);
    expect(await errorOf(elsewhere.view(tenantId))).to.include(error);
    expect(moves).to.equal(4);
  });

  it("try again when another process was faster", async () => {
    const tenantId = await tenant(10);
    let attempts = 0;
    const take: typeof store.budgets.take = async (...claim) => {
      attempts += 1;
      return attempts > 1 && store.budgets.take(...claim);
    };
    expect((await begin(openProcess({ take }), tenantId, callOf(4))).nanoUsd).to.equal(4 * USD);
    attempts = 0;
    expect((await begin(openProcess({ take }), tenantId, callOf(9, 1))).nanoUsd, "of the rest").to.equal(6 * USD);
  });

  it("write a settlement in at most four attempts, with a longer wait before each", async () => {
    const tenantId = await tenant(1);
    const failing = (failures: number) => {
      const calls: unknown[] = [];
      const settle: typeof store.budgets.settle = async (...call) => {
        if (calls.push(call) <= failures) throw unavailable("The store");
        return store.budgets.settle(...call);
      };
      return { ...openProcess({ settle }), calls };
    };
    const [late, never] = [failing(1), failing(4)];
    const amounts = await Promise.all([late, never].map((budgets) => budgets.reserveForLater(tenantId, callOf(0.5))));
    const from = performance.now();
    await Promise.all(
      [late, never].map((budgets, at) => budgets.settleLater(tenantId, amounts[at] ?? expect.fail(), 0)),
    );
    expect(performance.now() - from, "the least that three waits take").to.be.above(1_700);
    expect([late.calls.length, never.calls.length]).to.deep.equal([2, 4]);
    expect([late.logged.length, never.logged.length]).to.deep.equal([0, 1]);
    expect(never.logged[0]).to.contain(tenantId);
    expect(await left(openProcess(), tenantId), "what was not settled counts as spent").to.deep.equal([0.5, 0.5]);
  });

  it("give back once what a call has left when the answer to its settlement was lost, among those of others", async () => {
    const tenantId = await tenant(10);
    let calls = 0;
    const settle: typeof store.budgets.settle = async (...call) => {
      await store.budgets.settle(...call);
      calls += 1;
      if (calls === 1) throw unavailable("The store");
    };
    const budgets = openProcess({ settle });
    const taken = [await begin(budgets, tenantId, callOf(4)), await begin(budgets, tenantId, callOf(2))];
    for (const reservation of taken) reservation.settle(1 * USD);
    await budgets.flush();
    expect(calls).to.equal(2);
    expect(await left(openProcess(), tenantId)).to.deep.equal([8, 0]);
  });

  it("are flushed when all that was settled is written", async () => {
    const gate = Promise.withResolvers<void>();
    const settle: typeof store.budgets.settle = async (...call) => {
      await gate.promise;
      return store.budgets.settle(...call);
    };
    const [budgets, tenantId] = [openProcess({ settle }), await tenant(1)];
    (await begin(budgets, tenantId, callOf(1))).settle(0);
    let isFlushed = false;
    const flushing = budgets.flush().then(() => {
      isFlushed = true;
    });
    await budgets.view(tenantId);
    expect(isFlushed).to.equal(false);
    gate.resolve();
    await flushing;
    expect(await left(budgets, tenantId)).to.deep.equal([1, 0]);
  });

  it("show nothing as set aside when more was settled than is known to be", async () => {
    const [budgets, tenantId] = [openProcess(), await tenant(1)];
    await budgets.view(tenantId);
    await budgets.settleLater(tenantId, { month, nanoUsd: 0.5 * USD }, 0.5 * USD); // of a record that did not note it yet
    expect(await left(budgets, tenantId)).to.deep.equal([1, 0]);
  });
});
