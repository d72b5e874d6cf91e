import { expect } from "chai";
import type { CataloguedModel } from "../../src/gateway/catalogue.ts";
import { beginCall, type CallEnd, type GatewayCaller, openCall } from "../../src/gateway/money/account.ts";
import type { Reservation } from "../../src/gateway/money/budget.ts";
import { AppError, notFound, toErrorView, unavailable } from "../../src/lib/errors.ts";
import type { CompletionRecord } from "../../src/store/completion-store.ts";

/** A prompt's token costs 2,000 billionths of a dollar here, an answer's 10,000. */
const model: CataloguedModel = {
  id: "m",
  name: "M",
  provider: "openai",
  type: "chat",
  contextWindow: 100_000,
  maxOutput: 10_000,
  price: { input: 2, output: 10 },
  features: [],
  settings: [],
  priceSource: "https://example.test",
  priceDate: "2026-11-20",
};
const about = {
  kind: "chat" as const,
  routing: { requested: "an alias", model, reason: "named", fallbacks: [] },
  isStreamed: true,
  inputTokens: () => 50,
  toBounds: () => bounds,
};
const bounds = {
  mostNanoUsd: 900,
  askedNanoUsd: 900,
  leastNanoUsd: 400_000,
  answerFor: (nanoUsd: number) => nanoUsd / 1_000,
  ...{ asked: 900, least: 400, priceOf: (answer: number) => answer * 1_000 },
};
const usage = { inputTokens: 100, outputTokens: 20 };
const ofUsage = 400_000;
const none = { inputTokens: 0, outputTokens: 0 };

/** A caller whose client is there, and what was recorded of its calls, settled and counted to its run. */
function makeHarness() {
  const records: CompletionRecord[] = [];
  const settled: number[] = [];
  const spent: object[] = [];
  const leaving = new AbortController();
  const caller: GatewayCaller = { tenantId: "ten_1", keyId: "key_1", surface: "api", signal: leaving.signal };
  const limit = { spend: (one: object) => void spent.push(one) };
  const held: Reservation = { nanoUsd: 1_000_000, bounds, settle: (nanoUsd) => void settled.push(nanoUsd) };
  const ledger = {
    record: (record: CompletionRecord) => void records.push(record),
    requireTaken: async () => undefined,
  };
  return { records, settled, spent, leaving, caller: { ...caller, limit }, held, ledger };
}

describe("the account of a model call", () => {
  it("is one record with all its facts, however often it is settled", () => {
    const { records, settled, spent, caller, held, ledger } = makeHarness();
    const { now } = performance;
    const before = new Date();
    let clock = 1_000;
    performance.now = () => clock;
    try {
      const call = beginCall(ledger, caller, { ...about, areTextsKept: true }, held);
      clock += 3.0004;
      call.onAttempt();
      clock += 4;
      call.onAttempt();
      clock += 5;
      call.onFirstToken();
      clock += 6;
      call.onFirstToken();
      const content = { messages: [], text: "4" };
      const end: CallEnd = { usage, estimate: () => none, finishReason: "stop", content: () => content };
      const timingsMs = { total: 18, provider: 15, firstToken: 12 };
      const settlement = call.settle(end);
      expect(settlement).to.deep.equal({ usage, costUsd: 0.0004, timingsMs });
      expect(call.settle({ error: unavailable("It") })).to.equal(settlement);
      const [{ _id, createdAt, ...record } = expect.fail("there is none"), ...others] = records;
      expect(others).to.deep.equal([]);
      expect([_id, /^log_/.test(_id)]).to.deep.equal([call.logId, true]);
      expect(createdAt.getTime()).to.be.within(before.getTime(), Date.now());
      expect(record).to.deep.equal({
        tenantId: "ten_1",
        keyId: "key_1",
        surface: "api",
        kind: "chat",
        requestedModel: "an alias",
        model: "m",
        provider: "openai",
        isStreamed: true,
        outcome: "completed",
        finishReason: "stop",
        ...usage,
        usageSource: "provider",
        costNanoUsd: ofUsage,
        isCached: false,
        attempts: 2,
        firstTokenMs: 12,
        durationMs: 18,
        content,
      });
      expect(settled).to.deep.equal([ofUsage]);
      expect(spent).to.deep.equal([{ usage, costUsd: 0.0004 }]);
    } finally {
      performance.now = now;
    }
  });

  const gone = new AppError("client_closed", "The client has left.");
  const counted = { inputTokens: 300, outputTokens: 7 };
  const billed = (own: typeof usage) => ({
    inputTokens: own.inputTokens + counted.inputTokens,
    outputTokens: own.outputTokens + counted.outputTokens,
  });
  const ofFailed = 670_000;
  const ended = { outcome: "completed", usageSource: "provider" } as const;
  const failed = { outcome: "failed", usageSource: "estimate" } as const;
  const ways: [how: string, CallEnd & { isLeft?: true; isBilled?: true }, Partial<CompletionRecord>][] = [
    ["from the cache", { usage, isCached: true }, { ...ended, ...usage, costNanoUsd: 0, isCached: true }],
    [
      "by the gateway's own count",
      { estimate: () => counted },
      { ...failed, outcome: "completed", ...counted, costNanoUsd: ofFailed },
    ],
    ["refused", { error: notFound("It") }, { ...failed, ...none, costNanoUsd: 0, error: toErrorView(notFound("It")) }],
    [
      "by an unknown error",
      { error: new TypeError("x") },
      { ...failed, ...none, error: toErrorView(new TypeError("x")) },
    ],
    ["by a client that left", { error: gone, usage }, { ...ended, outcome: "aborted", ...usage, costNanoUsd: ofUsage }],
    ["by an error after its client left", { error: notFound("It"), isLeft: true }, { ...failed, outcome: "aborted" }],
    ["whole, although its client left", { usage, isLeft: true }, ended],
    [
      "after a billed attempt",
      { usage, isBilled: true },
      { ...failed, outcome: "completed", ...billed(usage), costNanoUsd: ofUsage + ofFailed },
    ],
    [
      "in a billed attempt",
      { error: notFound("It"), isBilled: true },
      { ...failed, ...counted, costNanoUsd: ofFailed },
    ],
  ];
  for (const [how, { isLeft, isBilled, ...end }, expected] of ways) {
    it(`counts a call that ended ${how}`, () => {
      const { records, settled, spent, leaving, caller, held, ledger } = makeHarness();
      const call = beginCall(ledger, caller, about, held);
      if (isBilled) call.onCharged({ usage: counted });
      if (isLeft) leaving.abort();
      const settlement = call.settle(end);
      const [record = expect.fail("there is none")] = records;
      expect(record).to.deep.include(expected);
      expect("error" in record).to.equal(end.error !== undefined);
      const { inputTokens, outputTokens, costNanoUsd } = record;
      const sum = { usage: { inputTokens, outputTokens }, costUsd: costNanoUsd / 1e9 };
      expect(settlement).to.deep.include(sum);
      expect([settled, spent]).to.deep.equal([[costNanoUsd], [sum]]);
    });
  }

  it("limits each attempt to what the reservation has left, and refuses one that it cannot pay for", () => {
    const { caller, held, ledger } = makeHarness();
    const request = { model: "m", messages: [], maxTokens: 5_000 };
    expect(beginCall(ledger, caller, about).capped(request)).to.equal(request);
    const call = beginCall(ledger, caller, about, held);
    expect(call.capped(request)).to.deep.equal({ ...request, maxTokens: 1_000 });
    call.onCharged({ usage: { inputTokens: 300, outputTokens: 0 } });
    expect(call.capped(request), "the least that is worth it").to.deep.equal({ ...request, maxTokens: 400 });
    call.onCharged({ usage: { inputTokens: 1, outputTokens: 0 } });
    expect(() => call.capped(request))
      .to.throw(AppError, "used up")
      .with.property("code", "budget_exhausted");
  });

  it("is opened once the store takes records and an amount is reserved, of the budgets of its run where it has some", async () => {
    const { caller, held, ledger, records } = makeHarness();
    const order: string[] = [];
    const step = async (name: string) => void order.push(name);
    const deps = {
      callTexts: { areKept: () => step("settings read").then(() => true) },
      ledger: { ...ledger, requireTaken: () => step("taken") },
      budgets: { reserve: () => step("reserved").then(() => held) },
      runBudgets: { reserve: () => step("reserved of runs").then(() => ({ ...held, answerTokens: 700 })) },
    };
    const call = await openCall(deps, caller, about);
    expect(order.splice(0)).to.deep.equal(["settings read", "taken", "reserved"]);
    expect(call.capped({ model: "m", messages: [] }).maxTokens).to.equal(1_000);
    const limit = { ...caller.limit, boundBy: ["run_1:1"] };
    const bound = await openCall(deps, { ...caller, limit }, about);
    expect(order).to.deep.equal(["settings read", "taken", "reserved of runs"]);
    expect(bound.capped({ model: "m", messages: [] }).maxTokens).to.equal(700);
    expect(records).to.deep.equal([]);
  });

  it("is opened without the store for a free model", async () => {
    const { caller, ledger } = makeHarness();
    const none = { reserve: async () => expect.fail("no run has made it") };
    const free = {
      budgets: { reserve: async () => undefined },
      runBudgets: none,
      callTexts: { areKept: async () => false },
    };
    const full = { ...ledger, requireTaken: () => Promise.reject(unavailable("The store")) };
    const ofPrice = (input: number) => ({
      ...about,
      routing: { ...about.routing, model: { ...model, price: { input, output: 1 } } },
    });
    expect(await openCall({ ledger: full, ...free }, caller, ofPrice(0))).to.have.property("logId");
    const error = await openCall({ ledger: full, ...free }, caller, ofPrice(0.2)).catch(toErrorView);
    expect(error).to.include({ code: "unavailable" });
  });
});
