import { mock } from "node:test";
import { expect } from "chai";
import type { CostBounds } from "../../src/gateway/money/prices.ts";
import { makeRunBudgets } from "../../src/gateway/money/run-budgets.ts";
import { AppError } from "../../src/lib/errors.ts";
import { newId } from "../../src/lib/ids.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import { makeRunBudgetStore, type RunBudgetStore } from "../../src/store/run-budget-store.ts";
import { pollUntil } from "../support/poll-until.ts";
import { useStore } from "../support/use-store.ts";

const NO_LIMIT = Number.POSITIVE_INFINITY;
const PROMPT = 10;
const { signal } = new AbortController();
/** A call that asks for so long an answer, at a billionth of a USD a token. */
const callOf = (asked: number, least = asked) => {
  const priceOf = (answer: number) => PROMPT + answer;
  const most = { mostNanoUsd: priceOf(asked), askedNanoUsd: priceOf(asked), leastNanoUsd: priceOf(least) };
  const bounds: CostBounds = { ...most, asked, least, priceOf, answerFor: (nanoUsd) => nanoUsd - PROMPT };
  return { toBounds: () => bounds, inputTokens: () => PROMPT };
};
const used = (outputTokens: number) => [PROMPT + outputTokens, { inputTokens: PROMPT, outputTokens }] as const;
const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => expect.fail("it was not refused"),
    (error: unknown) => (error instanceof AppError ? error.code : error),
  );

describe("the budgets of runs", () => {
  const open = useStore();
  let store: RunBudgetStore;
  before(() => {
    store = makeRunBudgetStore(open());
  });
  afterEach(() => mock.timers.reset());

  /** One process of several, and a budget that has so many tokens left. */
  const process = () =>
    makeRunBudgets({
      store: { runBudgets: store },
      budgets: { reserve: async () => undefined },
      logger: makeLogger({ level: "silent", name: "test" }),
    });
  const begin = async (tokens: number) => {
    const [budgets, tenantId, runId] = [process(), newId("tenant"), newId("run")];
    const id = `${runId}:1`;
    await budgets.open(tenantId, id, { tokens, usd: NO_LIMIT });
    const reserve = (asked: ReturnType<typeof callOf>, { by = budgets, until = signal } = {}) =>
      by.reserve({ tenantId }, [id], asked, until);
    const left = async () => (await store.find(tenantId, id))?.leftTokens;
    return { budgets, tenantId, runId, id, reserve, left };
  };

  it("set aside what a call asks for, and are settled to what it has used, in any process", async () => {
    const { budgets, tenantId, id, reserve, left } = await begin(100);
    const one = await reserve(callOf(50));
    expect([one.answerTokens, await left()]).to.deep.equal([50, 40]);
    await budgets.open(tenantId, id, { tokens: 1_000, usd: 1 }); // an attempt that is repeated
    const other = process();
    const waiting = reserve(callOf(50), { by: other });
    one.settle(...used(20));
    const two = await waiting;
    expect(await left()).to.equal(10);
    two.settle(...used(60));
    await other.flush();
    expect(await left(), "it used more than it had asked for").to.equal(0);
    expect(await codeOf(reserve(callOf(1)))).to.equal("budget_exhausted");
  });

  it("give a call all that is left once it is alone, and refuse it where that is too little", async () => {
    const { reserve, left } = await begin(100);
    const one = await reserve(callOf(500, 20));
    expect([one.answerTokens, await left()]).to.deep.equal([90, 0]);
    const waiting = Promise.allSettled([reserve(callOf(500, 20)), reserve(callOf(500, 60))]);
    one.settle(...used(40));
    const [small, large] = await waiting;
    expect([small.status, large.status]).to.deep.equal(["fulfilled", "rejected"]);
    if (small.status === "fulfilled") small.value.settle(...used(0));
  });

  it("take what a dead process has set aside back, and count a slow one that was taken for dead", async () => {
    const { budgets, tenantId, id, reserve, left } = await begin(100);
    const slow = await reserve(callOf(90));
    const holdId = Object.keys((await store.find(tenantId, id))?.holds ?? {})[0] ?? "";
    await store.renew(tenantId, id, { id: holdId, until: new Date(Date.now() - 1) });
    const next = await reserve(callOf(50));
    next.settle(...used(50));
    slow.settle(...used(30));
    await budgets.flush();
    expect(await left()).to.equal(0);
  });

  it("believe a long call that its process renews", async () => {
    const { tenantId, id, reserve } = await begin(100);
    const until = async () => Object.values((await store.find(tenantId, id))?.holds ?? {})[0]?.until.getTime() ?? 0;
    mock.timers.enable({ apis: ["setInterval"] });
    const long = await reserve(callOf(90));
    const first = await until();
    mock.timers.tick(20_000);
    await pollUntil(async () => (await until()) > first);
    long.settle(...used(1));
  });

  it("let a call wait until its caller has gone, and nothing of it stays", async () => {
    const { reserve, left, budgets } = await begin(100);
    const one = await reserve(callOf(90));
    const leaving = new AbortController();
    const waiting = codeOf(reserve(callOf(90), { until: leaving.signal }));
    leaving.abort();
    expect(await waiting).to.equal("client_closed");
    one.settle(...used(0));
    await budgets.flush();
    expect(await left()).to.equal(90);
  });

  it("take from each that binds a run, or from none", async () => {
    const { budgets, tenantId, runId, id, left } = await begin(100);
    await budgets.open(tenantId, `${runId}:2`, { tokens: 20, usd: NO_LIMIT });
    const refused = budgets.reserve({ tenantId }, [id, `${runId}:2`], callOf(50), signal);
    expect(await codeOf(refused)).to.equal("budget_exhausted");
    await budgets.flush();
    expect(await left()).to.equal(100);
  });

  it("refuse calls of a run that has ended, and keep those of other runs", async () => {
    const { budgets, tenantId, runId, reserve } = await begin(100);
    await budgets.open(tenantId, `${runId}x:1`, { tokens: 7, usd: NO_LIMIT });
    await budgets.close(tenantId, runId);
    expect(await codeOf(reserve(callOf(1)))).to.equal("budget_exhausted");
    expect((await store.find(tenantId, `${runId}x:1`))?.leftTokens).to.equal(7);
  });
});
