import { expect } from "chai";
import { makeUsageIncrements } from "../../src/gateway/money/usage-increments.ts";
import { derivedId, newId } from "../../src/lib/ids.ts";
import type { CompletionRecord } from "../../src/store/completion-store.ts";
import { makeCompletion } from "../support/completion-record.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A day that is kept by the hour, and far from what the calls of other tests add. */
const day = new Date(Date.now() - 5 * DAY_MS).toISOString().slice(0, 10);
const next = new Date(Date.parse(day) + DAY_MS).toISOString();

describe("usage over time", () => {
  let test: TestPlatform;
  let client: ApiClient;
  let tenantId: string;
  before(async () => {
    test = await startPlatform({ workers: false });
    client = makeClient({ url: test.url, key: test.keys.owner });
    tenantId = await tenantOf(test);
  });
  after(() => test.close());

  const call = (at: string | Date, changes: Partial<CompletionRecord> = {}) => {
    const createdAt = new Date(at);
    const _id = derivedId("log", { at: createdAt, from: newId("log") });
    return makeCompletion({ _id, tenantId, createdAt, costNanoUsd: 1_000_000_000, durationMs: 100, ...changes });
  };
  const settle = async (records: readonly CompletionRecord[]) => {
    const { completions, usage } = test.platform.store;
    await completions.insertMany(records);
    await usage.add({ writer: `w${newId("log").slice(-6)}`, number: 1 }, makeUsageIncrements()(records));
  };
  const series = (query: Record<string, string>) => client.get(`/usage/series?${new URLSearchParams(query)}`);

  it("has a value for each hour, divided by the names that cost most and all others", async () => {
    const names = Array.from({ length: 10 }, (_, at) => `m${at}`);
    await settle([
      ...names.map((model, at) => call(`${day}T05:10:00Z`, { model, costNanoUsd: (10 - at) * 1_000_000_000 })),
      call(`${day}T23:59:59.999Z`, { model: "m0", outcome: "failed", costNanoUsd: 0 }),
    ]);
    const found = await series({ from: `${day}T00:00:00Z`, to: next, by: "model" });
    expect([found.at("step"), (found.at("times") as string[]).length]).to.deep.equal(["hour", 24]);
    expect(found.at("times.5")).to.equal(`${day}T05:00:00.000Z`);
    expect([found.at("total.requests.5"), found.at("total.requests.6"), found.at("total.errors.23")]).to.deep.equal([
      10, 0, 1,
    ]);
    expect([found.at("total.latencyMs.p50.5"), found.at("total.latencyMs.p50.6")]).to.deep.equal([90.5, null]);
    const divided = found.at("series") as { name: string | null; costUsd: number[] }[];
    expect(divided.map(({ name, costUsd }) => [name, costUsd[5]])).to.have.deep.members([
      ...names.slice(0, 8).map((name, at) => [name, 10 - at]),
      [null, 3],
    ]);
  });

  it("has the same by the day, and of one model alone", async () => {
    const from = new Date(Date.parse(day) - 29 * DAY_MS).toISOString();
    const found = await series({ from, to: next, by: "surface", model: "m0" });
    expect([found.at("step"), (found.at("times") as string[]).length]).to.deep.equal(["day", 30]);
    expect([found.at("total.requests.29"), found.at("series.0.name"), found.at("series.0.requests.29")]).to.deep.equal([
      2,
      "api",
      2,
    ]);
  });

  it("counts the minutes of the last hour from the call logs", async () => {
    const at = new Date(Date.now() - 10 * 60_000);
    await settle([call(at, { model: "now" }), call(at, { model: "now", surface: "cli" })]);
    const from = new Date(Date.now() - HOUR_MS).toISOString();
    const found = await series({ from, by: "model", model: "now" });
    const times = found.at("times") as string[];
    const place = times.indexOf(`${at.toISOString().slice(0, 16)}:00.000Z`);
    expect([found.at("step"), times.length, found.at("isWhole")]).to.deep.equal(["minute", 61, true]);
    expect([found.at(`total.requests.${place}`), found.at(`series.0.costUsd.${place}`)]).to.deep.equal([2, 2]);
  });

  it("refuses a span that has too many points or none, by the field's name", async () => {
    const to = "2026-01-10T00:00:00Z";
    for (const query of [
      { from: to, to },
      { from: "2025-01-01T00:00:00Z", to },
      { from: "2026-01-01T00:00:00Z", to, step: "hour" },
      { from: "2026-01-09T00:00:00Z", to, step: "minute" },
    ]) {
      const refused = await series(query);
      expect([refused.status, refused.at("error.param")], JSON.stringify(query)).to.deep.equal([400, "from"]);
    }
    for (const [name, value] of [
      ["by", "subject"],
      ["step", "week"],
      ["from", "yesterday"],
    ] as const) {
      const refused = await series({ [name]: value });
      expect([refused.status, refused.at("error.param")], name).to.deep.equal([400, name]);
    }
  });

  it("shows another tenant nothing of it", async () => {
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    for (const query of [`from=${day}T00:00:00Z&to=${next}&by=model`, "by=key"]) {
      const found = await stranger.get(`/usage/series?${query}`);
      expect(found.at("series")).to.deep.equal([]);
      expect((found.at("total.requests") as number[]).every((n) => n === 0)).to.equal(true);
    }
    const { at } = await stranger.get(`/usage/series?from=${new Date(Date.now() - HOUR_MS).toISOString()}`);
    expect((at("total.requests") as number[]).every((n) => n === 0)).to.equal(true);
  });
});
