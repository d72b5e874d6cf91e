import { expect } from "chai";
import { newId } from "../../src/lib/ids.ts";
import type { CompletionRecord } from "../../src/store/completion-store.ts";
import { makeCompletion } from "../support/completion-record.ts";
import { type ApiClient, makeClient, valueAt } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

describe("what people look up", () => {
  let test: TestPlatform;
  let owner: ApiClient;
  let member: ApiClient;
  let stranger: ApiClient;
  before(async () => {
    test = await startPlatform();
    [owner, member, stranger] = (["owner", "member", "stranger"] as const).map((role) =>
      makeClient({ url: test.url, key: test.keys[role] }),
    ) as [ApiClient, ApiClient, ApiClient]; // one for each of three roles
  });
  after(() => test.close());

  const idsOf = (list: unknown, field: string) => (list as object[]).map((one) => valueAt(one, field));

  describe("the calls", () => {
    const logIds: string[] = [];
    before(async () => {
      for (const [content, surface] of [
        ["one", "shop"],
        ["two", "shop"],
        ["three", "desk"],
      ]) {
        const body = { messages: [{ role: "user", content }] };
        const asked = surface === "desk" ? owner : member;
        const headers = { "x-svc-surface": String(surface) };
        logIds.unshift((await asked.post("/ai/chat", body, { headers })).string("logId"));
      }
      await test.platform.gateway.flush();
    });

    it("are listed newest first, page by page, without texts and without another tenant's", async () => {
      const first = await member.get("/ai/logs?kind=chat&limit=2");
      expect(idsOf(first.at("data"), "logId")).to.deep.equal(logIds.slice(0, 2));
      expect(first.at("data[0]")).to.deep.include({ kind: "chat", status: "completed", surface: "desk" });
      const second = await member.get(`/ai/logs?kind=chat&limit=2&cursor=${first.at("nextCursor")}`);
      expect([idsOf(second.at("data"), "logId"), second.at("nextCursor")]).to.deep.equal([[logIds[2]], null]);
      expect(first.text).not.to.contain("three");
      expect((await stranger.get("/ai/logs")).at("data")).to.deep.equal([]);
    });

    it("are found by surface, key, model, kind, outcome and time", async () => {
      const find = async (query: string) => idsOf((await member.get(`/ai/logs?${query}`)).at("data"), "logId");
      expect(await find("surface=shop")).to.deep.equal(logIds.slice(1));
      expect(await find("surface=shop&limit=1")).to.deep.equal(logIds.slice(1, 2));
      expect(await find(`keyId=${(await owner.get("/me")).at("keyId")}`)).to.deep.equal(logIds.slice(0, 1));
      expect(await find("model=switchyard-offline&kind=chat&status=completed")).to.deep.equal(logIds);
      for (const none of ["model=other", "kind=embedding&surface=shop", "status=failed"])
        expect(await find(none)).to.deep.equal([]);
      const at = (await member.get(`/ai/logs/${logIds[1]}`)).string("createdAt");
      const time = encodeURIComponent(at);
      const [before, since] = await Promise.all([find(`kind=chat&to=${time}`), find(`kind=chat&from=${time}`)]);
      expect([before, since]).to.deep.equal([logIds.slice(2), logIds.slice(0, 2)]);
      expect((await member.get("/ai/logs?from=yesterday")).status).to.equal(400);
    });

    it("that failed are found among any number of others, and a page looks at 5,000 of those", async () => {
      const { platform } = test;
      const tenantId = await tenantOf(test);
      const record = (more: Partial<CompletionRecord>) =>
        makeCompletion({ tenantId, keyId: newId("apiKey"), surface: "many", ...more });
      const failed = record({ outcome: "failed", model: "broken" });
      const [oldest, ...many] = Array.from({ length: 6_000 }, () => record({}));
      const all = [{ ...record({}), ...oldest, model: "rare" }, failed, ...many];
      for (let at = 0; at < all.length; at += 500) await platform.store.completions.insertMany(all.slice(at, at + 500));
      expect(idsOf((await member.get("/ai/logs?status=failed")).at("data"), "logId")).to.deep.equal([failed._id]);
      const first = await member.get("/ai/logs?model=rare");
      expect(first.at("data")).to.deep.equal([]);
      const second = await member.get(`/ai/logs?model=rare&cursor=${first.string("nextCursor")}`);
      expect(idsOf(second.at("data"), "logId")).to.deep.equal([oldest?._id]);
    });
  });

  it("shows the chunks of a document in order, page by page, to its own tenant", async () => {
    const content = Array.from({ length: 40 }, (_, n) => `# Part ${n}\n\n${`Sentence ${n} of the pump. `.repeat(60)}`);
    const document = await member.post("/rag/ingest", { title: "Long", content: content.join("\n\n") });
    const path = `/rag/documents/${document.string("documentId")}/chunks`;
    const total = Number(document.at("chunks"));
    expect(total).to.be.above(3);
    const places: unknown[] = [];
    for (let cursor: unknown = 0; cursor !== null; ) {
      const page = await member.get(`${path}?limit=3&cursor=${cursor}`);
      places.push(...idsOf(page.at("data"), "n"));
      cursor = page.at("nextCursor");
    }
    expect(places).to.deep.equal(Array.from({ length: total }, (_, n) => n));
    expect((await member.get(path)).string("data[0].content")).to.contain("Part 0");
    expect((await stranger.get(path)).status).to.equal(404);
  });

  it("finds documents by a part of the title, in any case", async () => {
    for (const title of ["Blue Whale", "Grey Whale", "Otter"])
      await member.post("/rag/ingest", { title, content: title });
    const found = await member.get("/rag/documents?title=wHALE");
    expect(idsOf(found.body, "title")).to.deep.equal(["Grey Whale", "Blue Whale"]);
    expect((await member.get("/rag/documents?title=walrus")).body).to.deep.equal([]);
    expect((await stranger.get("/rag/documents?title=whale")).body).to.deep.equal([]);
    const page = await member.get("/rag/documents?title=whale&limit=1");
    expect(page.headers.get("link")).to.contain("title=whale");
  });

  it("shows when a key was used last, and nothing of one that was not", async () => {
    const made = await owner.post("/keys", { name: "laptop" });
    const view = async () => {
      const { data } = (await owner.get("/keys")).body as { data: { keyId: string; lastUsedAt?: string }[] }; // as checked
      return data.find(({ keyId }) => keyId === made.at("keyId"));
    };
    await test.platform.tenancy.writeKeyUse();
    expect(await view()).not.to.have.property("lastUsedAt");
    await makeClient({ url: test.url, key: made.string("key") }).get("/me");
    await test.platform.tenancy.writeKeyUse();
    expect(Date.now() - Date.parse((await view())?.lastUsedAt ?? "")).to.be.within(0, 60_000);
  });

  describe("the budget over HTTP", () => {
    const put = (client: ApiClient, limitUsd: number | null) =>
      client.request("PUT", "/budget", { body: { limitUsd } });

    it("is the owner's to set and to remove, and the operator's limit holds beside it", async () => {
      const tenantId = await tenantOf(test);
      expect((await put(owner, 5)).at("budget.limitUsd")).to.equal(5);
      expect((await member.get("/usage")).at("budget.limitUsd")).to.equal(5);
      await test.platform.gateway.setBudget(tenantId, 2);
      expect((await put(owner, 100)).at("budget.limitUsd")).to.equal(2);
      expect((await put(owner, 1)).at("budget.limitUsd")).to.equal(1);
      await test.platform.gateway.setBudget(tenantId, null);
      expect((await put(owner, null)).at("budget")).to.equal(null);
      expect((await stranger.get("/usage")).at("budget")).to.equal(null);
    });

    it("is refused to others, and below zero", async () => {
      expect((await put(member, 5)).status).to.equal(403);
      expect((await put(owner, -1)).at("error.param")).to.equal("limitUsd");
    });
  });
});
