import { expect } from "chai";
import { newId } from "../../src/lib/ids.ts";
import { makeCompletion } from "../support/completion-record.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const tenantId = "ten_ledger";
const counters = { requests: 2, errors: 1, inputTokens: 30, outputTokens: 7, costNanoUsd: 1_234_567_890 };
const increment = { tenantId, day: "2026-11-20", model: "m", surface: "api", keyId: "key_1", ...counters };

describe("the ledger's store", () => {
  let test: TestPlatform;
  before(async function () {
    this.timeout(60_000);
    test = await startPlatform({ workers: false });
  });
  after(() => test.close());

  it("adds a batch once, however often it is written, also from many writers at once", async () => {
    const { usage } = test.platform.store;
    await usage.add({ writer: "wa", number: 1 }, [increment]);
    await Promise.all([1, 2, 3].map(() => usage.add({ writer: "wa", number: 1 }, [increment])));
    await Promise.all(["wa", "wb"].map((writer) => usage.add({ writer, number: 2 }, [{ ...increment, model: "n" }])));
    await usage.add({ writer: "wa", number: 3 }, [{ ...increment, day: "2026-11-21" }]);
    const query = { from: "2026-11-20", to: "2026-11-21" };
    const byModel = await usage.sum(tenantId, { ...query, groupBy: "model" });
    expect(byModel).to.have.deep.members([
      { group: "m", requests: 4, errors: 2, inputTokens: 60, outputTokens: 14, costNanoUsd: 2_469_135_780 },
      { group: "n", requests: 4, errors: 2, inputTokens: 60, outputTokens: 14, costNanoUsd: 2_469_135_780 },
    ]);
    const byDay = await usage.sum(tenantId, { ...query, groupBy: "day" });
    expect(byDay.map(({ group, requests }) => [group, requests])).to.deep.equal([
      ["2026-11-20", 6],
      ["2026-11-21", 2],
    ]);
    expect(await usage.sum(tenantId, { from: "2026-11-21", to: "2026-11-21", groupBy: "surface" })).to.deep.equal([
      { group: "api", ...counters },
    ]);
    expect(await usage.sum("ten_other", { ...query, groupBy: "model" })).to.deep.equal([]);
  });

  it("adds a batch once, even if its reply was lost and other writers have added hundreds meanwhile", async () => {
    const { usage } = test.platform.store;
    const one = { ...increment, tenantId: "ten_repeated" };
    await usage.add({ writer: "wslow", number: 1 }, [one]);
    for (let number = 1; number <= 200; number++) await usage.add({ writer: "wbusy", number }, [one]);
    await usage.add({ writer: "wslow", number: 1 }, [one]);
    await usage.add({ writer: "wbusy", number: 199 }, [one]); // one that arrives after its successor
    const query = { from: one.day, to: one.day, groupBy: "model" as const };
    expect((await usage.sum("ten_repeated", query))[0]?.requests).to.equal(201 * one.requests);
  });

  it("adds a single record once, after any number of others", async () => {
    const { usage } = test.platform.store;
    const one = { ...increment, tenantId: "ten_lines" };
    const logs = Array.from({ length: 300 }, () => newId("log"));
    await Promise.all(logs.map((log) => usage.addRecord(log, one)));
    await Promise.all([...logs, ...logs].map((log) => usage.addRecord(log, one)));
    await usage.add({ writer: "wa", number: 1 }, [one]);
    const query = { from: one.day, to: one.day, groupBy: "model" as const };
    expect((await usage.sum("ten_lines", query))[0]?.requests).to.equal(301 * one.requests);
  });

  it("keeps a record as it was first written, and shows it to its tenant only", async () => {
    const { completions } = test.platform.store;
    const document = makeCompletion({
      _id: "log_ledger_1",
      tenantId,
      requestedModel: "auto",
      isStreamed: true,
      inputTokens: 3,
      durationMs: 1.5,
      createdAt: new Date("2026-11-20T12:00:00Z"),
    });
    await completions.insertMany([document]);
    await completions.insertMany([
      { ...document, inputTokens: 99 },
      { ...document, _id: "log_ledger_2" },
    ]);
    const kept = { ...document, bytes: 1_024 };
    expect(await completions.get(tenantId, "log_ledger_1")).to.deep.equal(kept);
    expect(await completions.get(tenantId, "log_ledger_2")).to.include({ inputTokens: 3 });
    expect(await completions.get("ten_other", "log_ledger_1")).to.equal(null);
    expect(await completions.keep({ ...document, createdAt: new Date() })).to.deep.equal(kept);
    const next = { ...document, _id: "log_ledger_3" };
    expect(await completions.keep(next)).to.deep.equal({ ...kept, ...next });
  });
});
