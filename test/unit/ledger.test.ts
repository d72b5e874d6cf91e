import { syncBuiltinESMExports } from "node:module";
import { mock } from "node:test";
import { expect } from "chai";
import { makeLedger } from "../../src/gateway/money/ledger.ts";
import { makeUsageIncrements } from "../../src/gateway/money/usage-increments.ts";
import { AppError } from "../../src/lib/errors.ts";
import { makeLogger } from "../../src/observe/logger.ts";
import type { CompletionRecord, CompletionStore } from "../../src/store/completion-store.ts";
import type { UsageBatch } from "../../src/store/counted-once.ts";
import type { UsageIncrement, UsageStore } from "../../src/store/usage-store.ts";
import { makeCompletion } from "../support/completion-record.ts";
import { pollUntil } from "../support/poll-until.ts";

const logger = makeLogger({ level: "silent", name: "test" });
const record = (changes: Partial<CompletionRecord> = {}) =>
  makeCompletion({ createdAt: new Date("2026-11-20T12:00:00Z"), ...changes });

/** A store that fails on request, as an unavailable one does; the real one is used by the tests over HTTP. */
function makeFailingStore() {
  const written: string[][] = [];
  const added: { batch: UsageBatch; increments: readonly UsageIncrement[] }[] = [];
  const single: [logId: string, UsageIncrement][] = [];
  const tried: UsageBatch[] = [];
  const settled: CompletionRecord[] = [];
  const failures = { completions: 0, usage: 0, error: new Error("the store is unavailable") };
  const fail = (part: "completions" | "usage") => {
    if (failures[part]-- > 0) throw failures.error;
  };
  const completions: Pick<CompletionStore, "insertMany" | "keep"> = {
    insertMany: async (documents) => {
      fail("completions");
      written.push(documents.map(({ _id }) => _id));
    },
    keep: async (document) => document,
  };
  const usage: UsageStore = {
    add: async (batch, increments) => {
      tried.push(batch);
      fail("usage");
      added.push({ batch, increments });
    },
    addRecord: async (logId, increment) => void single.push([logId, increment]),
    sum: async () => [],
    sumsOf: async () => new Map(),
    costOf: async () => 0,
  };
  const deps = { completions, usage, toIncrements: makeUsageIncrements(), checkWrites: async () => undefined };
  return {
    ...deps,
    onSettled: (one: CompletionRecord) => void settled.push(one),
    written,
    tried,
    added,
    single,
    settled,
    failures,
  };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("ledger", () => {
  it("writes calls that end together in one group, by itself", async () => {
    const store = makeFailingStore();
    const ledger = makeLedger({ ...store, logger });
    const records = [record(), record(), record({ tenantId: "t2" })];
    for (const one of records) ledger.record(one);
    expect(ledger.pending(records[0]?._id ?? "")).to.equal(records[0]);
    expect(store.written).to.have.length(0);
    await pollUntil(() => store.added.length > 0, { everyMs: 1 });
    expect(store.written).to.deep.equal([records.map(({ _id }) => _id)]);
    expect(ledger.pending(records[0]?._id ?? "")).to.equal(undefined);
    const next = record();
    ledger.record(next);
    await pollUntil(() => store.added.length > 1, { everyMs: 1 });
    expect(store.written.at(-1)).to.deep.equal([next._id]);
    expect(store.settled, "what the metrics have counted").to.deep.equal([...records, next]);
    await ledger.close();
  });

  it("writes calls that come while it writes together, when the first of them has waited for its time", async () => {
    const store = makeFailingStore();
    const ledger = makeLedger({ ...store, logger });
    mock.timers.enable({ apis: ["setTimeout"] });
    try {
      const [first, second, third] = [record(), record(), record()];
      const write = Promise.withResolvers<void>();
      const { add } = store.usage;
      store.usage.add = (batch, increments) => write.promise.then(() => add(batch, increments));
      ledger.record(first);
      mock.timers.tick(40);
      await turn();
      ledger.record(second);
      write.resolve();
      mock.timers.tick(39);
      await turn();
      ledger.record(third);
      expect(store.written).to.deep.equal([[first._id]]);
      mock.timers.tick(1);
      await turn();
      expect(store.written).to.deep.equal([[first._id], [second._id, third._id]]);
    } finally {
      mock.timers.reset();
    }
    await ledger.close();
  });

  it("counts no call whose record is not written, so that a process may die in between", async () => {
    const store = makeFailingStore();
    const ledger = makeLedger({ ...store, logger });
    const write = Promise.withResolvers<void>();
    const { insertMany } = store.completions;
    store.completions.insertMany = (documents) => write.promise.then(() => insertMany(documents));
    ledger.record(record());
    const closed = ledger.close();
    await turn();
    expect(store.tried, "what was counted meanwhile").to.deep.equal([]);
    write.resolve();
    await closed;
    expect(store.added).to.have.length(1);
  });

  it("leaves no record behind that arrives while a write ends", async () => {
    for (let turns = 0; turns < 30; turns += 1) {
      const store = makeFailingStore();
      const ledger = makeLedger({ ...store, logger });
      ledger.record(record());
      const late = record();
      const flushed = ledger.flush();
      for (let at = 0; at < turns; at += 1) await undefined;
      ledger.record(late);
      await Promise.all([flushed, ledger.flush()]);
      expect(store.written.flat(), `${turns} turns after the write began`).to.include(late._id);
      await ledger.close();
    }
  });

  it("writes at most 500 in one group, and gives up the oldest when more than 50,000 wait", async () => {
    const store = makeFailingStore();
    const ledger = makeLedger({ ...store, logger });
    const records = Array.from({ length: 50_000 }, () => record());
    const [first, second] = records.map(({ _id }) => _id);
    for (const one of records) ledger.record(one);
    expect(ledger.pending(`${first}`)).to.equal(records[0]);
    const last = record();
    ledger.record(last);
    expect([first, second, last._id].map((id) => ledger.pending(`${id}`))).to.deep.equal([undefined, records[1], last]);
    await ledger.flush();
    expect(store.written.map(({ length }) => length)).to.deep.equal(Array.from({ length: 100 }, () => 500));
    expect(store.written.at(-1)?.at(-1)).to.equal(last._id);
    await ledger.close();
  });

  it("sums by tenant, day, model, surface and key, and counts failures as errors, but not callers that left, nor cached tokens", () => {
    const rows = makeUsageIncrements()([
      record(),
      record({ outcome: "failed", inputTokens: 1, outputTokens: 0, costNanoUsd: 0 }),
      record({ outcome: "aborted", outputTokens: 2 }),
      record({ isCached: true, costNanoUsd: 0 }),
      record({ surface: "cli" }),
      record({ model: "n" }),
      record({ createdAt: new Date("2026-11-21T00:00:00Z") }),
      record({ tenantId: "t2" }),
      record({ keyId: "k2" }),
    ]);
    expect(rows).to.have.length(6);
    expect(rows[0]).to.deep.equal({
      tenantId: "t1",
      day: "2026-11-20",
      model: "m",
      surface: "api",
      keyId: "k1",
      inHour: { hour: "2026-11-20T12", model: "m", surface: "api", keyId: "k1" },
      requests: 4,
      errors: 1,
      inputTokens: 21,
      outputTokens: 7,
      costNanoUsd: 14,
      times: { ms1: 1 },
    });
  });

  it("repeats a failed write under the same number, continues with the next, and loses nothing", async () => {
    const store = makeFailingStore();
    const ledger = makeLedger({ ...store, logger });
    store.failures.completions = 1;
    store.failures.usage = 2;
    const first = record();
    ledger.record(first);
    await ledger.flush();
    expect(store.written).to.deep.equal([[first._id], [first._id], [first._id]]);
    expect(store.added).to.have.length(1);
    expect(store.added[0]?.increments[0]?.requests).to.equal(1);
    ledger.record(record());
    await ledger.close();
    expect(store.tried.map(({ number }) => number)).to.deep.equal([1, 1, 1, 2]);
    const other = makeLedger({ ...store, logger });
    other.record(record());
    await other.close();
    const [writer, ...others] = new Set(store.tried.map((batch) => batch.writer));
    expect(others, "one writer a ledger").to.have.length(1);
    expect(writer, "a field's name in the store").to.match(/^w[0-9a-f]{12}$/);
  });

  it("takes calls while a write is under way", async () => {
    const store = makeFailingStore();
    const ledger = makeLedger({ ...store, logger });
    store.failures.completions = 1;
    ledger.record(record());
    const flushed = ledger.flush();
    const late = record();
    ledger.record(late);
    await flushed;
    expect(store.written.flat()).to.include(late._id);
    await ledger.close();
  });

  it("retries after 100 ms, then after twice as long each time, 5 s at most", async () => {
    const store = makeFailingStore();
    const ledger = makeLedger({ ...store, logger });
    const { random } = Math;
    mock.timers.enable({ apis: ["setTimeout"] });
    syncBuiltinESMExports(); // the waits of node:timers/promises too
    Math.random = () => 0;
    try {
      store.failures.usage = 9;
      ledger.record(record());
      mock.timers.tick(40);
      await turn();
      for (const [before, ms] of [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000].entries()) {
        mock.timers.tick(ms - 1);
        await turn();
        expect(store.tried, `${ms - 1} ms after attempt ${before + 1}`).to.have.length(before + 1);
        mock.timers.tick(1);
        await turn();
        expect(store.tried, `${ms} ms after attempt ${before + 1}`).to.have.length(before + 2);
      }
      expect(store.added).to.have.length(1);
    } finally {
      Math.random = random;
      mock.timers.reset();
      syncBuiltinESMExports();
    }
    await ledger.close();
  });

  it("writes one record at once, and counts it under its id", async () => {
    const store = makeFailingStore();
    const ledger = makeLedger({ ...store, logger });
    const [first, repeated] = [record({ inputTokens: 30 }), record()];
    store.completions.keep = async () => first;
    await ledger.write(repeated);
    expect(store.single).to.deep.equal([[first._id, makeUsageIncrements()([first])[0]]]);
    expect(store.settled).to.deep.equal([repeated]);
  });

  it("lets a call begin only when the store takes writes again, once it has refused one", async () => {
    const store = makeFailingStore();
    let isFull = true;
    const checkWrites = async () => {
      if (isFull) throw store.failures.error;
      return undefined;
    };
    const ledger = makeLedger({ ...store, checkWrites, logger });
    const flush = async () => {
      store.failures.completions = 1;
      ledger.record(record());
      await ledger.flush();
    };
    await flush();
    await ledger.requireTaken(); // after a store that was away
    store.failures.error = new AppError("storage_full", "The store is full.");
    await flush();
    expect(await ledger.requireTaken().catch((error: unknown) => error)).to.equal(store.failures.error);
    isFull = false;
    await ledger.requireTaken();
    isFull = true;
    await ledger.requireTaken(); // asks the store no more
    store.completions.keep = () => Promise.reject(store.failures.error);
    expect(await ledger.write(record()).catch((error: unknown) => error)).to.equal(store.failures.error);
    expect(await ledger.requireTaken().catch((error: unknown) => error)).to.equal(store.failures.error);
    isFull = false;
    await ledger.close();
  });

  it("leaves no timer when it is closed", async () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    await turn(); // Mocha's own
    const before = timers();
    const ledger = makeLedger({ ...makeFailingStore(), logger });
    ledger.record(record());
    await ledger.close();
    expect(timers()).to.equal(before);
  });

  it("gives up after three attempts when it closes and the store is unavailable", async () => {
    const store = makeFailingStore();
    const ledger = makeLedger({ ...store, logger });
    store.failures.usage = 1_000;
    ledger.record(record());
    await ledger.close();
    expect(store.added).to.have.length(0);
    expect(store.tried).to.have.length(3);
  });
});
