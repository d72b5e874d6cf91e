import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient, valueAt } from "../support/http-client.ts";
import { callTool, toolCall } from "../support/mcp-call.ts";
import { pollUntil } from "../support/poll-until.ts";
import { beginPost } from "../support/raw-http.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

type Made = { client: ApiClient; tenantId: string; key: string };

/** Tenants of these names, which the first tenant of the platform makes. */
async function makeTenants({ url, keys }: TestPlatform, names: readonly string[]): Promise<Made[]> {
  const owner = makeClient({ url, key: keys.owner });
  const { value } = await callTool(owner, "svc_org_create", { name: "Group" });
  const organizationId = valueAt(value, "organizationId");
  return Promise.all(
    names.map(async (name) => {
      const added = await callTool(owner, "svc_org_add_tenant", { organizationId, name });
      const key = String(valueAt(added.value, "apiKey"));
      return { client: makeClient({ url, key }), tenantId: String(valueAt(added.value, "tenantId")), key };
    }),
  );
}

describe("the rate of an organization's root", () => {
  /** A minute's; what comes back while the calls run is far from as much again. */
  const rate = 40;
  let test: TestPlatform;
  let made: Made[];
  beforeEach(async () => {
    test = await startPlatform({ workers: false, env: { RATE_LIMIT_RPM: String(rate) } });
    made = await makeTenants(test, ["one", "other"]);
  });
  afterEach(() => test.close());

  it("is shared by the tenants that it made", async () => {
    const clients = [...made.map(({ client }) => client), makeClient({ url: test.url, key: test.keys.member })];
    const calls = clients.flatMap((client) => Array.from({ length: rate }, () => client.get("/jobs")));
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    expect(statuses.filter((status) => status !== 429).length).to.be.below(1.5 * rate);
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    expect((await stranger.get("/jobs")).status, "another root").to.equal(200);
  });

  it("is shared by the tool calls of the tenants that it made", async () => {
    const batch = Array.from({ length: rate }, (_, id) => toolCall(id, "svc_health"));
    const answers = await Promise.all(made.map(({ client }) => client.post("/mcp", batch)));
    const texts = answers.flatMap(({ body }) => (body as object[]).map((each) => JSON.stringify(each)));
    expect(texts).to.have.lengthOf(2 * rate);
    expect(texts.filter((text) => !text.includes("rate_limited")).length).to.be.below(1.5 * rate);
  });
});

describe("the room of an organization's root", () => {
  let test: TestPlatform;
  let one: Made;
  let other: Made;
  before(async () => {
    test = await startPlatform({ workers: false, env: { RATE_LIMIT_CONCURRENT: "10" } });
    [one, other] = (await makeTenants(test, ["one", "other"])) as [Made, Made];
  });
  after(() => test.close());

  it("for concurrent requests is shared by the tenants that it made", async () => {
    const headers = { prefer: "respond-async" };
    const controller = new AbortController();
    for (const { client } of [one, other]) {
      const job = await client.post("/rag/ingest", { title: "t", content: "c" }, { headers });
      const path = `/jobs/${job.string("jobId")}/events`;
      for (let n = 0; n < 5; n += 1) await client.events("GET", path, { signal: controller.signal });
    }
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    for (const client of [one.client, other.client, owner]) {
      expect((await client.get("/jobs")).at("error.code")).to.equal("too_many_concurrent");
    }
    controller.abort();
    await pollUntil(async () => (await other.client.get("/jobs")).status === 200);
  });

  it("for large bodies is shared by the tenants that it made", async () => {
    const url = `${test.url}/rag/ingest`;
    const uploads = [one, other, one, other, one, other].map(({ key }) => beginPost(url, { key, length: 20 << 20 }));
    try {
      const outcomes = await Promise.all(
        uploads.map(({ asked, answer }) => Promise.race([asked.then(() => "taken" as const), answer])),
      );
      expect(outcomes.filter((outcome) => outcome === "taken")).to.have.length(3);
    } finally {
      for (const { end } of uploads) end();
    }
  });
});

describe("the widgets' share of an organization's root", () => {
  const rate = 30;
  let upstream: ScriptedUpstream;
  let test: TestPlatform;
  beforeEach(async () => {
    upstream = await startScriptedUpstream();
    test = await startPlatform({
      workers: false,
      env: {
        EDGE_BASE_URL: upstream.url,
        EDGE_MODEL: "scripted",
        RATE_LIMIT_RPM: String(rate),
        RATE_LIMIT_CONCURRENT: "4",
        WIDGET_RATE_LIMIT_RPM: "100000",
      },
    });
  });
  afterEach(async () => {
    await test.close();
    await upstream.close();
  });

  /** A chat by a widget key of the root, and of each of two tenants that it made. */
  const findChats = async () => {
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    const made = (await makeTenants(test, ["one", "other"])).map(({ client }) => client);
    const keys = await Promise.all([owner, ...made].map((client) => client.post("/ai/widget/key", {})));
    const widgets = keys.map((key) => makeClient({ url: test.url, key: key.string("key") }));
    const question = { model: "scripted", messages: [{ role: "user", content: "Who are you?" }] };
    return { made, chats: widgets.map((widget) => () => widget.post("/ai/chat", question)) };
  };

  it("of its rate is one for all tenants that it made", async () => {
    const { made, chats } = await findChats();
    const statuses: number[] = [];
    for (let n = 0; n < rate / 2; n += 1) for (const chat of chats) statuses.push((await chat()).status);
    expect(statuses.filter((status) => status === 200).length).to.be.within(rate / 3, 0.7 * rate);
    for (const client of made) expect((await client.get("/jobs")).status).to.equal(200);
  });

  it("of its places is one for all tenants that it made", async () => {
    const { made, chats } = await findChats();
    const held = Promise.withResolvers<string>();
    upstream.play(() => (upstream.calls.length <= 2 ? held.promise : "Hello."));
    const served = chats.slice(0, 2).map((chat) => chat());
    await pollUntil(async () => upstream.calls.length === 2);
    const [beyond] = await Promise.all(chats.slice(2).map((chat) => chat()));
    expect(beyond?.at("error.code")).to.equal("too_many_concurrent");
    for (const client of made) expect((await client.get("/jobs")).status).to.equal(200);
    held.resolve("Hello.");
    expect((await Promise.all(served)).map(({ status }) => status)).to.deep.equal([200, 200]);
  });
});

describe("the budget of an organization's root", () => {
  /** 0.2 USD a million tokens of prompt, 1.25 a million of answer; so a call costs 0.0002 + 0.001 USD. */
  const ask = { model: "gpt-5.4-nano", maxTokens: 1_000, messages: [{ role: "user", content: "word ".repeat(400) }] };
  const costUsd = 0.0012;
  let upstream: FakeProvider;
  let test: TestPlatform;
  let made: Made;
  let rootId: string;
  before(async () => {
    upstream = await startFakeProvider();
    upstream.setDefault({ usage: { prompt_tokens: 1_000, completion_tokens: 800 } });
    test = await startPlatform({
      workers: false,
      env: { OPENAI_API_KEY: "sk-platform-0123456789abcdef", OPENAI_BASE_URL: upstream.url },
    });
    [made] = (await makeTenants(test, ["made"])) as [Made];
    rootId = await tenantOf(test);
  });
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const micro = (usd: unknown) => Math.round(Number(usd) * 1e6);
  const budget = async (tenantId: string) => {
    await test.platform.gateway.flush();
    const view = await test.platform.gateway.budget(tenantId);
    return view && [micro(view.limitUsd), micro(view.leftUsd), micro(view.reservedUsd)];
  };
  const chat = async () => {
    const { status, at } = await made.client.post("/ai/chat", ask);
    return [status, at("error.code")];
  };
  const set = (tenantId: string, usd: number | null) => test.platform.gateway.setBudget(tenantId, usd);
  const refused = [402, "budget_exhausted"];

  it("counts the spending of its tenants, even from before it was set", async () => {
    expect(await chat()).to.deep.equal([200, undefined]);
    await test.platform.gateway.flush();
    await set(rootId, 1);
    expect(await budget(rootId)).to.deep.equal([1e6, 1e6 - micro(costUsd), 0]);
    expect(await chat()).to.deep.equal([200, undefined]);
    expect(await budget(rootId)).to.deep.equal([1e6, 1e6 - 2 * micro(costUsd), 0]);
    expect(await budget(made.tenantId), "what the tenant sees").to.deep.equal(await budget(rootId));
    expect(micro((await made.client.get("/usage")).at("budget.limitUsd"))).to.equal(1e6);
  });

  it("refuses a call of a tenant that it made, even if it is set later or the tenant has its own budget", async () => {
    await set(rootId, 0.001);
    expect(await chat()).to.deep.equal(refused);
    await set(made.tenantId, 5);
    const before = await budget(made.tenantId);
    expect(await chat()).to.deep.equal(refused);
    expect(await budget(made.tenantId), "the one with less is shown").to.deep.equal(before);
    await set(rootId, null);
    expect(await budget(made.tenantId), "nothing stays set aside").to.deep.equal([5e6, 5e6 - 2 * micro(costUsd), 0]);
  });

  it("does not keep it from making tenants, which it pays for", async () => {
    await set(rootId, 0.001);
    const [paid] = await makeTenants(test, ["paid"]);
    const { status, at } = await (paid ?? made).client.post("/ai/chat", ask);
    expect([paid?.key.slice(0, 3), status, at("error.code")]).to.deep.equal(["sk_", ...refused]);
  });

  it("limits a created tenant by its own budget and its parent's", async () => {
    await set(rootId, 1);
    await set(made.tenantId, 1);
    expect(await chat()).to.deep.equal([200, undefined]);
    for (const tenantId of [rootId, made.tenantId]) {
      expect(await budget(tenantId)).to.deep.equal([1e6, 1e6 - 3 * micro(costUsd), 0]);
    }
    await set(made.tenantId, 0.001);
    expect(await chat()).to.deep.equal(refused);
    expect(await budget(rootId), "nothing is taken").to.deep.equal([1e6, 1e6 - 3 * micro(costUsd), 0]);
    const root = makeClient({ url: test.url, key: test.keys.member });
    expect((await root.post("/ai/chat", ask)).status, "the root's own calls").to.equal(200);
  });
});
