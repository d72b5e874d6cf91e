import { expect } from "chai";
import { unavailable } from "../../src/lib/errors.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { linkedPicture, pictureOf } from "../support/media.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

/** 0.2 USD a million tokens of prompt, 1.25 a million of answer. */
const model = "gpt-5.4-nano";
const usage = { prompt_tokens: 1_000, completion_tokens: 800 };
/** What the fake's usage comes to: 0.0002 + 0.001 USD. */
const costUsd = 0.0012;
const ask = { model, maxTokens: 1_000, messages: [{ role: "user", content: "word ".repeat(400) }] };

describe("a tenant's budget", () => {
  let upstream: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  let tenantId: string;
  before(async () => {
    upstream = await startFakeProvider();
    upstream.setDefault({ usage });
    test = await startPlatform({
      workers: false,
      env: { OPENAI_API_KEY: "sk-platform-0123456789abcdef", OPENAI_BASE_URL: upstream.url },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
    tenantId = await tenantOf(test);
  });
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const { round } = Math;
  const micro = (usd: unknown) => round(Number(usd) * 1e6);
  const budget = async () => {
    await test.platform.gateway.flush();
    return (await client.get("/usage")).at("budget") as { limitUsd: number; leftUsd: number } | null;
  };
  /** Leaves the tenant so much, whatever it has spent. */
  const leave = async (usd: number) => {
    await test.platform.gateway.setBudget(tenantId, 100);
    const left = (await budget())?.leftUsd ?? 0;
    await test.platform.gateway.setBudget(tenantId, 100 - left + usd);
    expect(micro((await budget())?.leftUsd)).to.equal(micro(usd));
  };

  it("is none at first, and then counts what the month has cost already", async () => {
    expect((await client.post("/ai/chat", ask)).at("costUsd")).to.equal(costUsd);
    expect(await budget()).to.equal(null);
    await test.platform.gateway.setBudget(tenantId, 1);
    expect(micro((await budget())?.leftUsd)).to.equal(micro(1 - costUsd));
  });

  it("is settled to the real cost of a call, however it ends", async () => {
    await leave(1);
    const spend = async (calling: () => Promise<unknown>) => {
      const before = (await budget())?.leftUsd ?? 0;
      await calling();
      return micro(before - ((await budget())?.leftUsd ?? 0));
    };
    expect(await spend(() => client.post("/ai/chat", ask))).to.equal(micro(costUsd));
    upstream.next({ status: 400 });
    expect(await spend(() => client.post("/ai/chat", ask)), "refused by the provider").to.equal(0);
    const streamed = async () => {
      const { events } = await client.events("POST", "/ai/chat", { body: { ...ask, stream: true } });
      await Array.fromAsync(events);
    };
    expect(await spend(streamed)).to.equal(micro(costUsd));
  });

  it("refuses a call that it has no room for, and calls no provider", async () => {
    await leave(0.001);
    upstream.requests.length = 0;
    const refused = await client.post("/ai/chat", ask);
    const { type, code } = (refused.at("error") ?? {}) as { type?: string; code?: string };
    expect([refused.status, type, code]).to.deep.equal([402, "quota_error", "budget_exhausted"]);
    const streamed = await client.post("/ai/chat", { ...ask, stream: true });
    expect(streamed.status, "before the first byte of a stream").to.equal(402);
    expect(upstream.requests).to.have.lengthOf(0);
    expect((await client.post("/ai/chat", { messages: ask.messages })).status, "free calls continue").to.equal(200);
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    expect((await stranger.post("/ai/chat", ask)).status, "as do other tenants").to.equal(200);
  });

  it("sets aside the tokens of a picture, not its characters, and is settled by the provider's count", async () => {
    const chat = (...urls: string[]) => {
      const pictures = urls.map((url) => ({ type: "image_url", image_url: { url } }));
      const content = [{ type: "text", text: "What is this?" }, ...pictures];
      return client.post("/ai/chat", { ...ask, messages: [{ role: "user", content }] });
    };
    await leave(0.0015); // an answer of 1,000 tokens takes 0.00125 USD, a picture of 3,779 tokens 0.00076
    expect((await chat(linkedPicture)).status).to.equal(402);
    expect((await chat()).status).to.equal(200);
    await leave(0.003);
    expect((await chat(`${pictureOf(40, 40)}${"A".repeat(400_000)}`)).at("costUsd")).to.equal(costUsd);
    expect(micro((await budget())?.leftUsd)).to.equal(micro(0.003 - costUsd));
  });

  it("is never passed by more than the calls in flight, when 64 race for the last cent", async () => {
    await leave(0.01);
    upstream.requests.length = 0;
    const answers = await Promise.all(Array.from({ length: 64 }, () => client.post("/ai/chat", ask)));
    const statuses = answers.map(({ status }) => status);
    const served = statuses.filter((status) => status === 200).length;
    expect(statuses.filter((status) => status === 402)).to.have.lengthOf(64 - served);
    // A call is let in by its estimate, which is above its cost here: 0.01 USD hold at most eight calls.
    expect(served).to.be.within(1, 8);
    expect(upstream.requests).to.have.lengthOf(served);
    expect(micro((await budget())?.leftUsd)).to.equal(micro(0.01 - served * costUsd));
  });

  it("does not affect a free call, even when it cannot be read", async () => {
    const { store, gateway, tenancy } = test.platform;
    const unread = await tenancy.ensureTenant("whose budget was never read");
    await test.platform.guards.forCall({ tenantId: unread, keyId: "key" }); // a policy that cannot be read lets nothing through
    const { find } = store.tenants;
    let reads = 0;
    const unhandled: unknown[] = [];
    const listen = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", listen);
    store.tenants.find = async () => {
      reads += 1;
      throw unavailable("The store");
    };
    try {
      const caller = { tenantId: unread, keyId: "key", surface: "api", signal: new AbortController().signal };
      const { embeddings } = await gateway.embed(caller, { input: ["free of charge"] });
      await new Promise((resolve) => setImmediate(resolve));
      expect([embeddings.length, reads]).to.deep.equal([1, 1]);
      expect(unhandled, "errors that would have ended the process").to.deep.equal([]);
    } finally {
      process.off("unhandledRejection", listen);
      store.tenants.find = find;
    }
  });

  it("can be lifted", async () => {
    await test.platform.gateway.setBudget(tenantId, null);
    expect(await budget()).to.equal(null);
    expect((await client.post("/ai/chat", ask)).status).to.equal(200);
  });
});
