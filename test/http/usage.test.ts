import { expect } from "chai";
import { makeUsageIncrements } from "../../src/gateway/money/usage-increments.ts";
import { newId } from "../../src/lib/ids.ts";
import type { CompletionRecord } from "../../src/store/completion-store.ts";
import { makeCompletion } from "../support/completion-record.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const DAY_MS = 86_400_000;
const dayOf = (time: number) => new Date(time).toISOString().slice(0, 10);
/** Days that are still kept by the hour. */
const [first, second] = [dayOf(Date.now() - 4 * DAY_MS), dayOf(Date.now() - 3 * DAY_MS)];

describe("usage", () => {
  let test: TestPlatform;
  let client: ApiClient;
  let tenantId: string;
  before(async () => {
    test = await startPlatform({ workers: false });
    client = makeClient({ url: test.url, key: test.keys.owner });
    tenantId = await tenantOf(test);
  });
  after(() => test.close());

  const record = (changes: Partial<CompletionRecord> = {}) =>
    makeCompletion({
      tenantId,
      keyId: "key_01J0000000000000000000000A",
      costNanoUsd: 1_000,
      durationMs: 100,
      createdAt: new Date(`${first}T12:30:00Z`),
      ...changes,
    });
  const settle = async (records: readonly CompletionRecord[]) => {
    const { completions, usage } = test.platform.store;
    await completions.insertMany(records);
    await usage.add({ writer: `w${newId("log").slice(-6)}`, number: 1 }, makeUsageIncrements()(records));
  };
  const report = (query: string) => client.get(`/usage?${query}`);
  type Row = Record<string, unknown> & { requests: number };

  it("has hours with their percentiles, limited to one model, surface or key if the query names it", async () => {
    const at = (hour: number, changes: Partial<CompletionRecord>) =>
      record({ createdAt: new Date(`${first}T${String(hour).padStart(2, "0")}:59:59.999Z`), ...changes });
    await settle([
      ...Array.from({ length: 90 }, () => at(0, { durationMs: 100 })),
      ...Array.from({ length: 10 }, () => at(0, { durationMs: 4_000, firstTokenMs: 300, isStreamed: true })),
      at(23, { model: "n", surface: "cli", durationMs: 20 }),
      at(23, { outcome: "failed", durationMs: 60_000, costNanoUsd: 0 }),
      at(23, { isCached: true, durationMs: 0.1, costNanoUsd: 0 }),
    ]);
    const span = `from=${first}&to=${first}`;
    const hours = (await report(`groupBy=hour&${span}`)).at("data") as Row[];
    expect(hours.map(({ hour, requests, errors }) => [hour, requests, errors])).to.deep.equal([
      [`${first}T00`, 100, 0],
      [`${first}T23`, 3, 1],
    ]);
    expect(hours[0]).to.deep.include({
      latencyMs: { p50: 90.5, p95: 3650, p99: 3650 },
      firstTokenMs: { p50: 287, p95: 287, p99: 287 },
    });
    expect(hours[1]?.latencyMs, "neither the failed call nor the cached one").to.deep.equal({
      p50: 18,
      p95: 18,
      p99: 18,
    });
    const days = await report(`groupBy=day&${span}`);
    expect(days.at("total.requests")).to.equal(103);
    expect(days.at("total.latencyMs.p99"), "merged of all").to.equal(3650);
    for (const filter of ["model=n", "surface=cli"]) {
      expect((await report(`groupBy=hour&${span}&${filter}`)).at("total.requests"), filter).to.equal(1);
      expect((await report(`groupBy=day&${span}&${filter}`)).at("total.requests"), filter).to.equal(1);
    }
    const other = `key=key_${"0".repeat(26)}`;
    expect((await report(`groupBy=key&${span}&${other}`)).at("data")).to.deep.equal([]);
  });

  it("has the end users that the bodies of calls name, and all other calls as one row", async () => {
    const ask = { messages: [{ role: "user", content: "When is pump P-100 bled?" }] };
    await client.post("/ai/chat", { ...ask, user: "ana", temperature: 1 });
    await client.post("/v1/chat/completions", { ...ask, model: "meta-llm", safety_identifier: "ana", user: "no" });
    await client.post("/ai/chat", { ...ask, temperature: 1 });
    const message = { model: "meta-llm", max_tokens: 20, messages: ask.messages, metadata: { user_id: "<b>ben</b>" } };
    await client.post("/v1/messages", message);
    await test.platform.gateway.flush();
    const today = dayOf(Date.now());
    const rows = (await report(`groupBy=subject&from=${today}`)).at("data") as Row[];
    const found = rows.map(({ subject, requests }) => [subject, requests]);
    expect(found).to.have.deep.members([
      ["ana", 2],
      ["<b>ben</b>", 1],
      [null, 1],
    ]);
    const { status, at } = await report("groupBy=subject&model=m");
    expect([status, at("error.param")]).to.deep.equal([400, "model"]);
    const calls = (await client.get("/ai/logs?limit=4")).at("data") as Row[];
    expect(calls.map(({ endUser }) => endUser)).to.deep.equal(["<b>ben</b>", undefined, "ana", "ana"]);
  });

  it("counts what a tenant names without end as `other`, and loses none of it", async () => {
    const createdAt = new Date(`${second}T08:00:00Z`);
    const names = Array.from({ length: 1_100 }, (_, at) => `visitor-${at}`);
    await settle(names.map((endUser, at) => record({ createdAt, endUser, surface: `s${at % 300}` })));
    const span = `from=${second}&to=${second}`;
    const bySubject = await report(`groupBy=subject&${span}`);
    const rows = bySubject.at("data") as Row[];
    expect(rows).to.have.length(1_000);
    expect(rows.find(({ subject }) => subject === "other")?.requests).to.equal(100);
    expect(bySubject.at("total.requests")).to.equal(1_100);
    const hours = await report(`groupBy=hour&${span}&surface=other`);
    expect(hours.at("total.requests"), "beyond 200 rows of an hour").to.equal(300);
    expect((await report(`groupBy=hour&${span}`)).at("total.requests")).to.equal(1_100);
    expect((await report(`groupBy=surface&${span}`)).at("data"), "of the day").to.have.length(300);
  });

  it("refuses more days than a grouping may have, by the field's name", async () => {
    const today = Date.now();
    for (const [groupBy, days] of [
      ["hour", 7],
      ["subject", 31],
      ["day", 366],
      ["model", 366],
    ] as const) {
      const from = (count: number) => report(`groupBy=${groupBy}&from=${dayOf(today - (count - 1) * DAY_MS)}`);
      expect((await from(days)).status, groupBy).to.equal(200);
      const refused = await from(days + 1);
      expect([refused.status, refused.at("error.param")], groupBy).to.deep.equal([400, "from"]);
    }
    for (const wrong of ["groupBy=week", "from=yesterday", "key=x", "model=", `surface=${"s".repeat(65)}`]) {
      const refused = await report(wrong);
      expect([refused.status, refused.at("error.param")], wrong).to.deep.equal([400, wrong.split("=")[0]]);
    }
  });

  it("shows another tenant nothing of it, by any grouping", async () => {
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    for (const groupBy of ["model", "surface", "day", "key"]) {
      const { at } = await stranger.get(`/usage?groupBy=${groupBy}&from=${first}`);
      expect(at("total.requests"), groupBy).to.equal(0);
    }
    for (const groupBy of ["hour", "subject"]) {
      const { at } = await stranger.get(`/usage?groupBy=${groupBy}&from=${first}&to=${second}`);
      expect([at("data"), at("total.requests")], groupBy).to.deep.equal([[], 0]);
    }
  });
});
