import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const question = { messages: [{ role: "user", content: "Who are you?" }], model: "scripted" };

describe("widget keys and the limits of their tenant", () => {
  let upstream: ScriptedUpstream;
  let test: TestPlatform;
  before(async () => {
    upstream = await startScriptedUpstream();
    test = await startPlatform({
      workers: false,
      env: {
        EDGE_BASE_URL: upstream.url,
        EDGE_MODEL: "scripted",
        RATE_LIMIT_RPM: "60",
        RATE_LIMIT_CONCURRENT: "4",
        WIDGET_RATE_LIMIT_RPM: "5",
        TRUSTED_PROXIES: "127.0.0.0/8, ::1",
      },
    });
  });
  after(async () => {
    await test.close();
    await upstream.close();
  });

  /** A tenant of its own, with a key of its owner and a widget key. */
  const found = async (name: string) => {
    const { tenancy } = test.platform;
    const tenantId = await tenancy.ensureTenant(name);
    const { key } = await tenancy.createKey({ tenantId, role: "owner", subject: `${name}@test` });
    const owner = makeClient({ url: test.url, key });
    const widgetKey = (await owner.post("/ai/widget/key", {})).string("key");
    const widget = makeClient({ url: test.url, key: widgetKey });
    const chat = (visitor: string) => widget.post("/ai/chat", question, { headers: { "x-forwarded-for": visitor } });
    return { owner, widget, chat };
  };
  const leftOf = (headers: Headers) => Number(/r=(\d+)/.exec(headers.get("ratelimit") ?? "")?.[1]);

  it("calls that a visitor's limit refuses take nothing from the tenant", async () => {
    const { owner, chat } = await found("one-visitor");
    const statuses: number[] = [];
    for (let n = 0; n < 80; n += 1) statuses.push((await chat("203.0.113.9")).status);
    expect(statuses.filter((status) => status === 429).length).to.be.above(60);
    const { status, headers } = await owner.get("/keys");
    expect(status).to.equal(200);
    expect(leftOf(headers)).to.be.above(40);
  });

  it("a visitor's chat is not batched, and says so", async () => {
    const { widget } = await found("no-batches");
    const response = await widget.post("/ai/chat", { ...question, prefer_async: true });
    expect(response.status).to.equal(200);
    expect(response.headers.get("x-svc-batch")).to.equal("ineligible; reason=widget-key");
  });

  it("all widget keys take at most a share of the tenant's rate", async () => {
    const { owner, chat } = await found("many-visitors");
    const statuses: number[] = [];
    for (let n = 0; n < 80; n += 1) statuses.push((await chat(`198.51.100.${n}`)).status);
    expect(statuses.filter((status) => status === 200).length).to.be.within(25, 45);
    const { status, headers } = await owner.get("/keys");
    expect(status).to.equal(200);
    expect(leftOf(headers)).to.be.above(20);
  });

  it("visitors are distinguished by the trusted proxy's header, not by their own; a network of IPv6 is one", async () => {
    const { chat } = await found("told-apart");
    const refused = async (visitors: string[]) => {
      const statuses = [];
      for (const visitor of visitors) statuses.push((await chat(visitor)).status);
      return statuses.filter((status) => status === 429).length;
    };
    const ten = Array.from({ length: 10 }, (_, n) => n);
    expect(await refused(ten.map((n) => `203.0.113.${n}`))).to.equal(0);
    expect(await refused(ten.map((n) => `203.0.113.${n}, 192.0.2.7`))).to.be.above(3);
    expect(await refused(ten.map((n) => `2001:db8:0:1::${n}`))).to.be.above(3);
  });

  it("all widget keys take at most a share of the tenant's places", async () => {
    const { owner, chat } = await found("places");
    const held = Promise.withResolvers<string>();
    upstream.play(() => held.promise);
    const chats = [chat("203.0.113.1"), chat("203.0.113.2")];
    await pollUntil(async () => upstream.calls.length === 2);
    const third = await chat("203.0.113.3");
    expect([third.status, third.at("error.code")]).to.deep.equal([429, "too_many_concurrent"]);
    expect((await owner.get("/keys")).status).to.equal(200);
    held.resolve("Hello.");
    expect((await Promise.all(chats)).map(({ status }) => status)).to.deep.equal([200, 200]);
  });
});

describe("what a widget key may ask for", () => {
  let fake: FakeProvider;
  let test: TestPlatform;
  let member: ApiClient;
  let widget: ApiClient;
  before(async () => {
    fake = await startFakeProvider();
    const edge = { EDGE_BASE_URL: fake.url, EDGE_MODEL: "llama-test" };
    test = await startPlatform({ workers: false, env: { ...edge, WIDGET_MAX_TOKENS: "50" } });
    member = makeClient({ url: test.url, key: test.keys.member });
    const made = await makeClient({ url: test.url, key: test.keys.admin }).post("/ai/widget/key", {});
    widget = makeClient({ url: test.url, key: made.string("key") });
  });
  after(async () => {
    await test.close();
    await fake.close();
  });

  const { messages } = question;
  const ofLength = (length: number) => ({ messages: [{ role: "user", content: "x".repeat(length) }] });

  it("is limited to 64 KiB", async () => {
    expect((await widget.post("/ai/chat", ofLength(60_000))).status).to.equal(200);
    const refused = await widget.post("/ai/chat", ofLength(70_000));
    expect([refused.status, refused.at("error.details.limitBytes")]).to.deep.equal([413, 64 << 10]);
    expect((await member.post("/ai/chat", ofLength(70_000))).status).to.equal(200);
  });

  it("is a chat without tools and schemas", async () => {
    const withSchema = { type: "json_schema", json_schema: { name: "port", schema: { type: "integer" } } };
    const tools = [{ type: "function", function: { name: "look_up" } }];
    for (const [param, body] of [
      ["tools", { messages, tools }],
      ["tool_choice", { messages, tool_choice: "none" }],
      ["toolChoice", { messages, toolChoice: "none" }],
      ["response_format", { messages, response_format: withSchema }],
      ["responseFormat", { messages, responseFormat: withSchema }],
    ] as const) {
      const { status, at } = await widget.post("/ai/chat", body);
      expect([status, at("error.param")]).to.deep.equal([400, param]);
    }
  });

  it("is an answer up to the limit of tokens, which is also the default", async () => {
    fake.reset();
    for (const cap of [{}, { maxTokens: 50 }, { max_tokens: 20 }, { maxTokens: 20, max_tokens: 20 }]) {
      expect((await widget.post("/ai/chat", { messages, ...cap })).status).to.equal(200);
    }
    const sent = fake.requests.map(({ body }) => body.max_tokens ?? body.max_completion_tokens);
    expect(sent).to.deep.equal([50, 50, 20, 20]);
    for (const param of ["maxTokens", "max_tokens"]) {
      const { status, at } = await widget.post("/ai/chat", { messages, [param]: 51 });
      expect([status, at("error.param")]).to.deep.equal([400, param]);
    }
    const unequal = await widget.post("/ai/chat", { messages, maxTokens: 20, max_tokens: 10 });
    expect([unequal.status, unequal.at("error.code")]).to.deep.equal([400, "invalid_request"]);
  });

  it("is never taken for a repeat: its idempotency keys are not those of the tenant", async () => {
    const headers = { "idempotency-key": "load-42" };
    expect((await widget.post("/ai/chat", { messages }, { headers })).status).to.equal(200);
    const again = await widget.post("/ai/chat", { messages: [{ role: "user", content: "Else?" }] }, { headers });
    expect([again.status, again.headers.get("idempotent-replayed")]).to.deep.equal([200, null]);
    expect((await member.post("/ai/chat", { messages }, { headers })).status, "the tenant's own").to.equal(200);
  });

  it("counts as the surface `widget`, whatever it says", async () => {
    const requests = async () => {
      await test.platform.gateway.flush(); // so that the row of this call is there, whatever it is called
      const rows = (await member.get("/usage?groupBy=surface")).at("data") as { surface: string; requests: number }[];
      return Object.fromEntries(rows.map((row) => [row.surface, row.requests]));
    };
    const before = await requests();
    await widget.post("/ai/chat", { messages }, { headers: { "x-svc-surface": "payroll" } });
    expect(await requests()).to.deep.equal({ ...before, widget: (before.widget ?? 0) + 1 });
  });
});
