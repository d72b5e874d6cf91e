import { expect } from "chai";
import { bytesOf } from "../../src/store/provider-key-store.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, type ApiEvent, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { rejectedUrls } from "../support/refused-urls.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";

const firstKey = "sk-custom-first-0123456789abcdef";
const secondKey = "sk-custom-second-0123456789abcde";
const question = { messages: [{ role: "user", content: "What does a lease do?" }] };
const call = { id: "call_1", name: "weather", arguments: '{"city":"Graz"}' };
const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object" } } }];
/** Prices in USD for a million tokens; the fake's usage is 11 and 7 tokens. */
const model = { id: "lab/small", type: "chat", contextWindow: 32_000, inputUsdPerMTok: 3, outputUsdPerMTok: 5 };
const embedding = { ...model, id: "vectors", type: "embedding", inputUsdPerMTok: 2, outputUsdPerMTok: 0 };
const COST_USD = (11 * 3 + 7 * 5) / 1e6;

const textsOf = async (events: AsyncIterable<ApiEvent>) => {
  const texts: string[] = [];
  for await (const { data } of events) {
    const { delta } = data as { delta?: { content: string } };
    if (delta) texts.push(delta.content);
  }
  return texts.join("");
};

describe("custom providers", () => {
  let upstream: FakeProvider;
  let test: TestPlatform;
  let admin: ApiClient;
  let member: ApiClient;
  let stranger: ApiClient;
  before(async function () {
    this.timeout(60_000);
    upstream = await startFakeProvider();
    test = await startPlatform({
      workers: false,
      env: {
        FETCH_ALLOW_ORIGINS: upstream.origin,
        OPENAI_API_KEY: "sk-of-the-platform-0123456789",
        OPENAI_BASE_URL: upstream.url,
        PROVIDER_MAX_ATTEMPTS: "3",
        MAX_OPEN_JOBS: "1",
      },
    });
    admin = makeClient({ url: test.url, key: test.keys.admin });
    member = makeClient({ url: test.url, key: test.keys.member });
    stranger = makeClient({ url: test.url, key: test.keys.stranger });
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const put = (name: string, given: object = {}, client = admin) =>
    client.request("PUT", `/ai/providers/custom/${name}`, {
      body: { baseUrl: upstream.url, key: firstKey, wire: "openai-chat", models: [model, embedding], ...given },
    });
  const chat = (given: object = {}) => member.post("/ai/chat", { ...question, model: "lab-a/lab/small", ...given });
  const keyUsed = () => {
    const { authorization, "x-api-key": own } = upstream.requests.at(-1)?.headers ?? {};
    return own ?? authorization?.replace("Bearer ", "");
  };

  const wires = [
    { name: "lab-a", wire: "openai-chat", baseUrl: () => upstream.url, path: "/v1/chat/completions" },
    { name: "lab-b", wire: "anthropic-messages", baseUrl: () => upstream.origin, path: "/v1/messages" },
    { name: "lab-c", wire: "openai-responses", baseUrl: () => upstream.url, path: "/v1/responses" },
  ];
  for (const { name, wire, baseUrl, path } of wires) {
    it(`chat, stream and call tools over ${wire}, at the stated prices`, async () => {
      const set = await put(name, { wire, baseUrl: baseUrl(), models: [model] });
      expect(set.status, set.text).to.equal(200);
      expect(set.body).to.deep.include({ name, wire, baseUrl: baseUrl(), models: [model], keyPreview: "sk-c…cdef" });
      const asked = `${name}/lab/small`;
      const answered = await chat({ model: asked });
      expect(answered.status, answered.text).to.equal(200);
      expect(answered.body).to.deep.include({ text: "The lease protects a job.", model: asked, costUsd: COST_USD });
      const sent = upstream.requests.at(-1);
      expect([sent?.path, sent?.body.model, keyUsed()]).to.deep.equal([path, "lab/small", firstKey]);
      await test.platform.gateway.flush();
      const log = await admin.get(`/ai/logs/${answered.string("logId")}`);
      expect(log.body).to.deep.include({ provider: name, model: asked, costUsd: COST_USD, inputTokens: 11 });

      const stream = await member.events("POST", "/ai/chat", { body: { ...question, model: asked, stream: true } });
      expect(await textsOf(stream.events)).to.equal("The lease protects a job.");

      upstream.next({ toolCalls: [call] }, { pieces: ["It rains."] });
      const called = await member.post("/v1/chat/completions", { ...question, model: asked, tools });
      expect(called.at("choices[0].message.tool_calls[0].function")).to.deep.equal({
        name: call.name,
        arguments: call.arguments,
      });
      const turn = called.at("choices[0].message");
      const result = { role: "tool", tool_call_id: call.id, content: "rain" };
      const messages = [...question.messages, turn, result];
      const ended = await member.post("/v1/chat/completions", { messages, model: asked, tools });
      expect(ended.at("choices[0].message.content")).to.equal("It rains.");
    });
  }

  it("embed over openai-chat, and refuse an embedding model of a wire that has none", async () => {
    await put("lab-a");
    const body = { model: "lab-a/vectors", input: ["one", "two"] };
    const embedded = await member.post("/v1/embeddings", body);
    expect(embedded.status, embedded.text).to.equal(200);
    expect(embedded.at("data")).to.have.length(2);
    expect(upstream.requests.at(-1)?.body.model).to.equal("vectors");
    const refused = await put("lab-b", { wire: "anthropic-messages" });
    expect([refused.status, refused.at("error.param")]).to.deep.equal([400, "models[1].type"]);
    const wrongKind = await chat({ model: "lab-a/vectors" });
    expect([wrongKind.status, wrongKind.at("error.code")]).to.deep.equal([400, "unknown_model"]);
  });

  it("are listed for their tenant alone, and unknown to others", async () => {
    await put("lab-a");
    const idsOf = async (client: ApiClient, path: string, field: string) =>
      ((await client.get(path)).at(field) as { id: string }[]).map(({ id }) => id);
    const ids = ["lab-a/lab/small", "lab-a/vectors"];
    expect(await idsOf(member, "/ai/models?provider=lab-a", "models")).to.have.members(ids);
    expect(await idsOf(member, "/v1/models", "data")).to.include.members(ids);
    expect(await idsOf(stranger, "/v1/models", "data")).not.to.include.members(ids);
    const [listed] = (await member.get("/ai/models?provider=lab-a&type=chat")).at("models") as object[];
    expect(listed).to.deep.include({
      provider: "lab-a",
      available: true,
      inputCostPer1k: 0.003,
      contextWindow: 32_000,
    });
    expect((await member.get("/v1/models/lab-a%2Flab%2Fsmall")).at("id")).to.equal("lab-a/lab/small");
    for (const { status, at } of [
      await stranger.get("/ai/models?provider=lab-a"),
      await stranger.post("/ai/chat", { ...question, model: "lab-a/lab/small" }),
      await stranger.request("PUT", "/ai/fallbacks", {
        body: { fallbacks: [{ model: "gpt-5.4-nano", models: ["lab-a/lab/small"] }] },
      }),
      await stranger.post("/agents", { name: "Desk", model: "lab-a/lab/small", systemPrompt: "You answer." }),
    ]) {
      expect([status, at("error.type")]).to.deep.equal([400, "invalid_request_error"]);
    }
    const embedded = await stranger.post("/v1/embeddings", { model: "lab-a/vectors", input: "one" });
    expect([embedded.status, embedded.at("error.code")]).to.deep.equal([404, "model_not_found"]);
    expect((await stranger.get("/v1/models/lab-a%2Flab%2Fsmall")).status).to.equal(404);
    expect(upstream.requests).to.deep.equal([]);
  });

  it("take the short key of a server that wants any key, and show it nowhere", async () => {
    expect((await put("lab-a", { key: "ollama" })).at("keyPreview")).to.equal("…");
    expect((await chat()).status).to.equal(200);
    expect(keyUsed()).to.equal("ollama");
    upstream.next({ status: 400, errorMessage: "The model is unknown to ollama: run `ollama pull`." });
    expect((await chat()).string("error.message")).to.contain("unknown to ollama: run `ollama pull`.");
    await put("lab-a", { key: firstKey });
  });

  it("are set by admins alone, listed by name without their keys, and bounded", async () => {
    expect((await put("lab-a", {}, member)).status).to.equal(403);
    await put("lab-c", { key: "short-key" });
    const listed = await member.get("/ai/providers/custom");
    const names = (listed.at("data") as { name: string }[]).map(({ name }) => name);
    expect(names).to.include("lab-c").and.deep.equal(names.toSorted());
    expect((await member.get("/ai/providers/custom/lab-c")).at("keyPreview"), "of a short key nothing").to.equal("…");
    for (const name of ["openai", "edge", "Lab", "a_b", "a".repeat(41), "a.b"]) {
      const { status, at } = await put(name);
      expect([status, at("error.param")], name).to.deep.equal([400, "name"]);
    }
    const cases: [string, object][] = [
      ["key", { key: "" }],
      ["key", { key: "with blanks in it" }],
      ["wire", { wire: "gemini" }],
      ["models", { models: [] }],
      ["models", { models: Array.from({ length: 51 }, (_, n) => ({ ...model, id: `m${n}` })) }],
      ["models[1].id", { models: [model, model] }],
      ["models[0].id", { models: [{ ...model, id: "two words" }] }],
      ["models[0].inputUsdPerMTok", { models: [{ ...model, inputUsdPerMTok: -1 }] }],
      ["models[0].contextWindow", { models: [{ ...model, contextWindow: 0 }] }],
      [
        "models[0].supportedFeatures",
        { wire: "anthropic-messages", models: [{ ...model, supportedFeatures: ["vision", "json_object"] }] },
      ],
      ["baseUrl", { baseUrl: "https://models.example.com/v1?key=1" }],
      ["baseUrl", { baseUrl: "http://models.example.com/v1" }],
      ["baseUrl", { baseUrl: `https://models.example.com/${"a".repeat(500)}` }],
    ];
    for (const [param, given] of cases) {
      const { status, at, text } = await put("lab-a", given);
      expect([status, at("error.param")], text).to.deep.equal([400, param]);
    }
  });

  it("answer at once also for a tenant that may make no further job", async () => {
    await put("lab-a");
    const later = { headers: { prefer: "respond-async" } };
    const ingest = () => member.post("/rag/ingest", { content: "A pump moves water." }, later);
    expect((await ingest()).status).to.equal(202);
    expect((await ingest()).status).to.equal(429);
    const batched = await chat({ model: "gpt-5.4-nano", prefer_async: true });
    expect([batched.status, batched.at("error.details.quota")]).to.deep.equal([429, "openJobs"]);
    expect((await chat({ prefer_async: true })).status).to.equal(200);
  });

  it("store their address in one spelling", async () => {
    const url = new URL(upstream.url);
    for (const baseUrl of [
      `HTTP://${url.host}${url.pathname}//`,
      `${url.origin}/x/..${url.pathname}/`,
      ` ${url.href}`,
    ]) {
      const set = await put("lab-a", { baseUrl });
      expect([set.status, set.at("baseUrl")], baseUrl).to.deep.equal([200, upstream.url]);
    }
  });

  for (const { wire, baseUrl } of wires) {
    const ofWire = () => ({ wire, baseUrl: baseUrl(), models: [model] });

    it(`refuse every address that is not public, by http and by https, by ${wire}`, async () => {
      const urls = rejectedUrls.filter((url) => url !== "");
      const all = [...urls, ...urls.map((url) => url.replace(/^http:/, "https:"))];
      for (const baseUrl of all) {
        const { status, at, text } = await put("lab-d", { ...ofWire(), baseUrl });
        expect([status, at("error.code"), at("error.param")], text).to.deep.equal([400, "source_refused", "baseUrl"]);
      }
      expect((await member.get("/ai/providers/custom/lab-d")).status).to.equal(404);
    });

    it(`change their key from one call to the next, and are gone when they are removed, by ${wire}`, async () => {
      await put("lab-a", ofWire());
      await chat();
      expect(keyUsed()).to.equal(firstKey);
      const rotated = await put("lab-a", { ...ofWire(), key: secondKey });
      expect(rotated.at("keyPreview")).to.equal("sk-c…bcde");
      await chat();
      expect(keyUsed()).to.equal(secondKey);
      upstream.next({ status: 401, errorMessage: `no such key ${secondKey}` });
      const refused = await chat();
      expect([refused.status, refused.at("error.code")]).to.deep.equal([400, "provider_key_refused"]);
      expect(refused.text).not.to.contain(secondKey);
      upstream.next({ status: 400, errorMessage: `not with ${secondKey}` });
      expect((await chat()).string("error.message")).to.contain("not with [key]");

      expect((await admin.delete("/ai/providers/custom/lab-a")).status).to.equal(204);
      expect((await admin.delete("/ai/providers/custom/lab-a")).status).to.equal(404);
      const gone = await chat();
      expect([gone.status, gone.at("error.code")]).to.deep.equal([400, "unknown_model"]);
    });

    it(`answer at once if a batch was requested, and say why, by ${wire}`, async () => {
      await put("lab-a", ofWire());
      const answered = await chat({ prefer_async: true });
      expect([answered.status, answered.headers.get("x-svc-batch")]).to.deep.equal([
        200,
        "ineligible; reason=no-batch-interface",
      ]);
    });

    it(`count against the budget, which stops them before they are called, by ${wire}`, async () => {
      await put("lab-a", { ...ofWire(), models: [{ ...model, inputUsdPerMTok: 1_000, outputUsdPerMTok: 1_000 }] });
      const tenantId = await tenantOf(test);
      await test.platform.gateway.setBudget(tenantId, 0.1);
      try {
        const stopped = await chat();
        expect([stopped.status, stopped.at("error.code")], stopped.text).to.deep.equal([402, "budget_exhausted"]);
        expect(upstream.requests).to.deep.equal([]);
      } finally {
        await test.platform.gateway.setBudget(tenantId, null);
      }
    });

    it(`are fallbacks, and have them, by ${wire}`, async () => {
      await put("lab-a", ofWire());
      const fallbacks = [
        { model: "gpt-5.4-nano", models: ["lab-a/lab/small"] },
        { model: "lab-a/lab/small", models: ["gpt-5.4-nano"] },
      ];
      const set = await admin.request("PUT", "/ai/fallbacks", { body: { fallbacks } });
      expect(set.status, set.text).to.equal(200);
      try {
        upstream.next({ status: 500 }, { status: 500 });
        expect((await chat({ model: "gpt-5.4-nano" })).at("model")).to.equal("lab-a/lab/small");
        expect(keyUsed()).to.equal(firstKey);
        upstream.next({ status: 500 }, { status: 500 });
        expect((await chat()).at("model")).to.equal("gpt-5.4-nano");
        expect(keyUsed(), "the key stays with its provider").to.equal("sk-of-the-platform-0123456789");
        await admin.delete("/ai/providers/custom/lab-a");
        upstream.next({ status: 500 }, { status: 500 });
        const alone = await chat({ model: "gpt-5.4-nano" });
        expect(alone.status, "a fallback that was removed is skipped").to.equal(200);
      } finally {
        await admin.request("PUT", "/ai/fallbacks", { body: { fallbacks: [] } });
      }
    });

    it(`have breakers of their own, which a new setting closes, by ${wire}`, async () => {
      await put("lab-e", ofWire());
      await put("lab-f", ofWire());
      upstream.setDefault({ status: 500 });
      const ask = (name: string) => chat({ model: `${name}/lab/small` });
      for (let tries = 0; tries < 2; tries += 1) await ask("lab-e");
      expect((await ask("lab-e")).at("error.details.code")).to.equal("breaker_open");
      upstream.setDefault({});
      expect((await ask("lab-f")).status, "another provider at the same server").to.equal(200);
      await put("lab-e", { ...ofWire(), key: secondKey });
      expect((await ask("lab-e")).status).to.equal(200);
    });
  }

  it("are not believed when they report a usage that cannot be", async () => {
    await put("lab-a");
    const impossible = [
      { prompt_tokens: -1_000_000, completion_tokens: 5 },
      { prompt_tokens: 11, completion_tokens: -7 },
      { prompt_tokens: 11, completion_tokens: 7, cached_tokens: 1_000_000 },
      { prompt_tokens: 1e12, completion_tokens: 7 },
      { prompt_tokens: 1.5, completion_tokens: 7 },
    ];
    for (const usage of impossible) {
      upstream.next({ usage }, { usage });
      const answered = await chat();
      expect(answered.at("costUsd"), JSON.stringify(usage)).to.be.within(1e-6, 1e-3);
      expect(answered.at("inputTokens")).to.be.within(1, 100);
      const { events } = await member.events("POST", "/ai/chat", {
        body: { ...question, model: "lab-a/lab/small", stream: true },
      });
      const end = (await Array.fromAsync(events)).at(-1)?.data as { costUsd: number };
      expect(end.costUsd, JSON.stringify(usage)).to.be.within(1e-6, 1e-3);
    }
  });

  it("fail if they answer with too much, with a redirect, or with something that is no chunk", async () => {
    await put("lab-g");
    const model = "lab-g/lab/small";
    const call = { index: 4_000_000_000, id: "a", function: { name: "weather", arguments: "{}" } };
    const chunk = { choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: "tool_calls" }] };
    upstream.setDefault({ rawBody: `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n` });
    const streamed = await member.post("/ai/chat", { ...question, model, tools, stream: true });
    expect([streamed.status, streamed.at("error.details.code")], streamed.text).to.deep.equal([
      502,
      "malformed_answer",
    ]);
    await put("lab-g"); // closes its breaker
    upstream.setDefault({ rawBody: 'data: {"choices":[null]}\n\ndata: [DONE]\n\n' });
    const empty = await member.post("/ai/chat", { ...question, model, stream: true });
    expect([empty.status, empty.at("error.details.code")], empty.text).to.deep.equal([502, "malformed_answer"]);
    upstream.reset();
    upstream.next({ status: 302, headers: { location: `${upstream.url}/chat/completions` } });
    expect((await chat({ model })).at("error.code")).to.equal("provider_failed");
    expect(upstream.requests, "it is not followed").to.have.length(1);
    upstream.setDefault({ rawBody: " ".repeat(17 << 20) });
    expect((await chat({ model })).at("error.code")).to.equal("provider_failed");
    await put("lab-g");
    const message = { role: "assistant", content: "Yes.", odd: Array(60_000).fill({}) };
    upstream.setDefault({ rawBody: JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }] }) });
    const crowded = await chat({ model });
    expect(crowded.at("error.code"), crowded.text).to.equal("provider_failed");
  });

  it("fail if their answer exceeds the model's limit, and have their errors read only as far as they explain", async () => {
    const short = { ...model, id: "lab/short", maxOutput: 1_000 };
    await put("lab-k", { models: [model, short] });
    const answerOf = (characters: number) =>
      JSON.stringify({
        choices: [{ index: 0, message: { role: "assistant", content: "x".repeat(characters) }, finish_reason: "stop" }],
      });
    upstream.setDefault({ rawBody: answerOf(200_000) });
    expect((await chat({ model: "lab-k/lab/short" })).status).to.equal(200);
    upstream.setDefault({ rawBody: answerOf(400_000) });
    expect((await chat({ model: "lab-k/lab/short" })).at("error.code")).to.equal("provider_failed");
    upstream.setDefault({ rawBody: answerOf(5_000_000) });
    expect((await chat({ model: "lab-k/lab/small" })).at("error.code")).to.equal("provider_failed");
    await put("lab-k"); // closes its breaker
    upstream.setDefault({ status: 400, rawBody: " ".repeat(15 << 20) });
    const refused = await chat({ model: "lab-k/lab/small" });
    expect([refused.status, refused.at("error.details.status")], refused.text).to.deep.equal([400, 400]);
  });

  it("are not called if their key cannot be read, such as a key that was sealed for another provider", async () => {
    await put("lab-h");
    await put("lab-i");
    const { customProviders } = test.platform.store;
    const tenantId = await tenantOf(test);
    const other = await customProviders.find(tenantId, "lab-i");
    if (other === null) throw new Error("the provider is not there");
    const { baseUrl, wire, models, preview, sealed } = other;
    const moved = { baseUrl, wire, models, preview, sealed: bytesOf(sealed), at: new Date() };
    await customProviders.replace(tenantId, "lab-h", moved);
    const unread = await chat({ model: "lab-h/lab/small" });
    expect([unread.status, unread.at("error.code")], unread.text).to.deep.equal([503, "provider_key_unreadable"]);
    expect(upstream.requests).to.deep.equal([]);
    expect((await member.get("/ai/models?provider=lab-h")).at("models[0].available")).to.equal(false);
    expect((await chat({ model: "lab-i/lab/small" })).status).to.equal(200);
  });

  it("have no name in the metrics", async () => {
    await put("lab-a");
    await chat();
    await test.platform.gateway.flush();
    const read = async () => (await test.platform.metrics.render()).text;
    const text = await pollUntil(async () => {
      const all = await read();
      return all.includes('provider="custom"') ? all : undefined;
    });
    expect(text).not.to.contain("lab-a");
  });
});
