import { expect } from "chai";
import { makeLedger, toIncrements } from "../../src/gateway/money/ledger.ts";
import { makeLogger } from "../../src/logger.ts";
import type { CompletionDocument, CompletionStore } from "../../src/store/completion-store.ts";
import type { UsageBatch, UsageIncrement, UsageStore } from "../../src/store/usage-store.ts";
import { pollUntil } from "../support/poll-until.ts";

const logger = makeLogger({ level: "silent", name: "test" });
let made = 0;
const record = (changes: Partial<CompletionDocument> = {}): CompletionDocument => ({
  _id: `log_${++made}`,
  tenantId: "t1",
  keyId: "k1",
  surface: "api",
  kind: "chat",
  requestedModel: "m",
  model: "m",
  provider: "edge",
  isStreamed: false,
  outcome: "completed",
  inputTokens: 10,
  outputTokens: 5,
  usageSource: "provider",
  costNanoUsd: 7,
  isCached: false,
  attempts: 1,
  durationMs: 1,
  createdAt: new Date("2026-11-20T12:00:00Z"),
  ...changes,
});

/** A store that fails when it is told to, as one does that is away; the real one is used by the tests over HTTP. */
function makeFailingStore() {
  const written: string[][] = [];
  const added: { batch: UsageBatch; increments: readonly UsageIncrement[] }[] = [];
  const tried: UsageBatch[] = [];
  const failures = { completions: 0, usage: 0 };
  const fail = (part: keyof typeof failures) => {
    if (failures[part]-- > 0) throw new Error("the store is away");
  };
  const completions: CompletionStore = {
    insertMany: async (documents) => {
      fail("completions");
      written.push(documents.map(({ _id }) => _id));
    },
    keep: async (document) => document,
    get: async () => null,
  };
  const usage: UsageStore = {
    add: async (batch, increments) => {
      tried.push(batch);
      fail("usage");
      added.push({ batch, increments });
    },
    addRecord: async () => undefined,
    sum: async () => [],
  };
  return { completions, usage, checkWrites: async () => undefined, written, tried, added, failures };
}

describe("ledger", () => {
  it("writes calls that end together in one group, by itself", async () => {
    const store = makeFailingStore();
    const ledger = makeLedger({ ...store, logger, onSettled: () => undefined });
    const records = [record(), record(), record({ tenantId: "t2" })];
    for (const one of records) ledger.record(one);
    expect(ledger.pending(records[0]?._id ?? "")).to.equal(records[0]);
    expect(store.written).to.have.length(0);
    await pollUntil(() => store.added.length > 0, { everyMs: 1 });
    expect(store.written).to.deep.equal([records.map(({ _id }) => _id)]);
    expect(ledger.pending(records[0]?._id ?? "")).to.equal(undefined);
    await ledger.close();
  });

  it("sums by tenant, day, model and surface, and counts failures as errors, but not callers that left", () => {
    const rows = toIncrements([
      record(),
      record({ outcome: "failed", inputTokens: 1, outputTokens: 0, costNanoUsd: 0 }),
      record({ outcome: "aborted", outputTokens: 2 }),
      record({ surface: "cli" }),
      record({ createdAt: new Date("2026-11-21T00:00:00Z") }),
      record({ tenantId: "t2" }),
    ]);
    expect(rows).to.have.length(4);
    expect(rows[0]).to.deep.equal({
      tenantId: "t1",
      day: "2026-11-20",
      model: "m",
      surface: "api",
      requests: 3,
      errors: 1,
      inputTokens: 21,
      outputTokens: 7,
      costNanoUsd: 14,
    });
  });

  it("repeats a write that failed under the same number, goes on to the next, and loses nothing", async () => {
    const store = makeFailingStore();
    const ledger = makeLedger({ ...store, logger, onSettled: () => undefined });
    store.failures.completions = 1;
    store.failures.usage = 2;
    const first = record();
    ledger.record(first);
    await ledger.flush();
    expect(store.written).to.deep.equal([[first._id], [first._id]]);
    expect(store.added).to.have.length(1);
    expect(store.added[0]?.increments[0]?.requests).to.equal(1);
    ledger.record(record());
    await ledger.close();
    expect(store.tried.map(({ number }) => number)).to.deep.equal([1, 1, 1, 2]);
    expect(new Set(store.tried.map(({ writer }) => writer)).size).to.equal(1);
  });

  it("takes calls while a write is under way", async () => {
    const store = makeFailingStore();
    const ledger = makeLedger({ ...store, logger, onSettled: () => undefined });
    store.failures.completions = 1;
    ledger.record(record());
    const flushed = ledger.flush();
    const late = record();
    ledger.record(late);
    await flushed;
    expect(store.written.flat()).to.include(late._id);
    await ledger.close();
  });

  it("closes although the store is away", async () => {
    const store = makeFailingStore();
    const ledger = makeLedger({ ...store, logger, onSettled: () => undefined });
    store.failures.completions = 1_000;
    store.failures.usage = 1_000;
    ledger.record(record());
    await ledger.close();
    expect(store.added).to.have.length(0);
  });
});
