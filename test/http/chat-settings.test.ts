import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { parseDataLines, postRaw } from "../support/raw-http.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const messages = [{ role: "user", content: "What does a lease protect?" }];
const tools = [{ type: "function", function: { name: "find", parameters: { type: "object" } } }];

/** As OpenAI's API names them, and with values that it takes. */
const openAiSettings = {
  reasoning_effort: "low",
  verbosity: "low",
  user: "u-1",
  safety_identifier: "s-1",
  service_tier: "flex",
  prompt_cache_key: "conversation-17",
};

describe("settings of a chat", () => {
  let fake: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  before(async function () {
    this.timeout(60_000);
    fake = await startFakeProvider();
    test = await startPlatform({
      workers: false,
      env: {
        EDGE_BASE_URL: fake.url,
        EDGE_MODEL: "llama-test",
        OPENAI_API_KEY: "sk-platform-openai",
        OPENAI_BASE_URL: fake.url,
        ANTHROPIC_API_KEY: "sk-ant-platform",
        ANTHROPIC_BASE_URL: fake.origin,
      },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  afterEach(() => fake.reset());
  after(async () => {
    await test.close();
    await fake.close();
  });

  const surfaces: [path: string, settings: object, toolSettings: object][] = [
    ["/v1/chat/completions", openAiSettings, { parallel_tool_calls: false }],
    ["/ai/chat", openAiSettings, { parallel_tool_calls: false }],
    [
      "/ai/chat",
      {
        reasoningEffort: "low",
        verbosity: "low",
        user: "u-1",
        safetyIdentifier: "s-1",
        serviceTier: "flex",
        promptCacheKey: "conversation-17",
      },
      { parallelToolCalls: false },
    ],
  ];
  for (const [path, settings, toolSettings] of surfaces) {
    it(`reach OpenAI as ${path} takes them: ${Object.keys(settings).join(", ")}`, async () => {
      const body = { model: "gpt-5.4-nano", messages, ...settings };
      const answered = await client.post(path, body);
      await postRaw(`${test.url}${path}`, { key: test.keys.member, body: { ...body, stream: true } });
      expect([answered.status, answered.headers.get("x-svc-ignored")]).to.deep.equal([200, null]);
      const called = await client.post(path, { model: "gpt-4.1-mini", messages, tools, ...toolSettings });
      expect(called.status).to.equal(200);
      const [first, streamed, withTools] = fake.requests;
      for (const sent of [first, streamed]) expect(sent?.body).to.deep.include(openAiSettings);
      expect(withTools?.body).to.deep.include({ parallel_tool_calls: false });
    });
  }

  it("reach OpenAI with metadata by its Responses API, which need not store the answer for that", async () => {
    const metadata = { order: "o-17" };
    for (const path of ["/ai/chat", "/v1/chat/completions"]) {
      const answered = await client.post(path, { model: "gpt-5.4-nano", messages, ...openAiSettings, metadata });
      expect([answered.status, answered.headers.get("x-svc-ignored")]).to.deep.equal([200, null]);
    }
    const { reasoning_effort: effort, verbosity, ...alike } = openAiSettings;
    for (const { path, body } of fake.requests) {
      expect(path).to.equal("/v1/responses");
      expect(body).to.deep.include({ ...alike, metadata, reasoning: { effort }, text: { verbosity }, store: false });
    }
  });

  it("are absent from a call that does not name them", async () => {
    await client.post("/ai/chat", { model: "gpt-5.4-nano", messages });
    expect(Object.keys(fake.requests[0]?.body ?? {})).to.have.members(["model", "messages"]);
  });

  const left: [model: string, setting: object, ignored: string, sent: string | undefined][] = [
    ["claude-opus-5", { seed: 7, verbosity: "low" }, "seed, verbosity", undefined],
    ["claude-sonnet-4-6", { temperature: 0.5, reasoning_effort: "low" }, "temperature;used=1", undefined],
    ["llama-test", { prompt_cache_key: "k", metadata: { a: "b" } }, "metadata, prompt_cache_key", undefined],
    ["gpt-4.1", { verbosity: "low", reasoning_effort: "high" }, "verbosity, reasoning_effort", undefined],
    ["gpt-6-luna", { seed: 7 }, "seed", undefined],
    ["gpt-6-astra", { reasoning_effort: "none" }, "reasoning_effort;used=low", "low"],
    ["gpt-5.4", { reasoning_effort: "max" }, "reasoning_effort;used=xhigh", "xhigh"],
    ["gpt-6-luna", { reasoning_effort: "minimal" }, "reasoning_effort;used=none", "none"],
  ];
  for (const [model, setting, ignored, sent] of left) {
    it(`are adjusted or left out if ${model} does not take them, and named: ${ignored}`, async () => {
      const answered = await client.post("/v1/chat/completions", { model, messages, ...setting });
      expect([answered.status, answered.headers.get("x-svc-ignored")]).to.deep.equal([200, ignored]);
      const { body } = fake.requests[0] ?? {};
      expect(body?.reasoning_effort).to.equal(sent);
      expect(body).not.to.have.any.keys("seed", "verbosity", "metadata", "prompt_cache_key", "temperature");
      const strict = { headers: { "x-svc-options": "strict=true" } };
      const refused = await client.post("/v1/chat/completions", { model, messages, ...setting }, strict);
      const [first] = ignored.split(/[;,]/);
      expect([refused.status, refused.at("error.param")]).to.deep.equal([400, first]);
      expect(refused.string("error.message")).to.contain(`${model} takes `).and.contain(first);
      expect(fake.requests).to.have.length(1);
    });
  }

  it("have the tier that the provider served at charged: flex at half the price, on either API", async () => {
    const model = "gpt-5.6-terra"; // 2 and 12 USD a million
    fake.setDefault({ usage: { prompt_tokens: 100, completion_tokens: 10 } });
    const full = (100 * 2 + 10 * 12) / 1e6;
    const body = { model, messages, tools };
    for (const [tier, costUsd] of [
      ["flex", full / 2],
      ["default", full],
    ] as const) {
      for (const effort of ["none", "low"]) {
        const asked = { ...body, service_tier: tier, reasoning_effort: effort };
        expect((await client.post("/ai/chat", asked)).at("costUsd"), `${tier} ${effort}`).to.equal(costUsd);
        const { text } = await postRaw(`${test.url}/ai/chat`, {
          key: test.keys.member,
          body: { ...asked, stream: true },
        });
        expect(parseDataLines(text).at(-1), `${tier} ${effort}`).to.include({ costUsd });
      }
    }
    expect(new Set(fake.requests.map(({ path }) => path))).to.have.all.keys("/v1/chat/completions", "/v1/responses");
  });

  it("lose a tier that the model does not have, or that has no price", async () => {
    for (const [model, tier] of [
      ["gpt-4.1", "flex"],
      ["claude-opus-5", "flex"],
      ["gpt-5.5", "priority"],
    ]) {
      const answered = await client.post("/ai/chat", { model, messages, service_tier: tier });
      expect([answered.status, answered.headers.get("x-svc-ignored")]).to.deep.equal([200, "service_tier"]);
      expect(fake.requests.at(-1)?.body).not.to.have.property("service_tier");
    }
  });

  it("decide what `auto` picks: first a model that takes them all", async () => {
    const question = [{ role: "user", content: "Prove it step by step" }];
    const steered = await client.post("/ai/chat", { model: "auto", messages: question, user: "u", verbosity: "low" });
    expect(steered.string("model")).to.match(/^gpt-5|^gpt-6/);
    // No model takes both of these, so one goes without.
    const odd = { messages: question, metadata: { a: "b" }, reasoning_effort: "minimal" };
    const answered = await client.post("/ai/chat", { model: "auto", ...odd });
    const named = await client.post("/ai/chat", { model: answered.string("model"), ...odd });
    expect(answered.headers.get("x-svc-ignored")).to.be.a("string").that.equals(named.headers.get("x-svc-ignored"));
    const forced = { tools, tool_choice: "required" };
    const refused = await client.post("/ai/chat", { model: "claude-opus-5-5", messages, ...forced });
    expect([refused.status, refused.at("error.param")]).to.deep.equal([400, "tool_choice"]);
  });

  const tooMany = Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`note-${n}`, ""]));
  const refused: [string, object][] = [
    ["metadata", { metadata: tooMany }],
    ["metadata.order", { metadata: { order: "x".repeat(513) } }],
    ["metadata.order", { metadata: { order: 17 } }],
    [`metadata.${"n".repeat(65)}`, { metadata: { ["n".repeat(65)]: "" } }],
    ["reasoning_effort", { reasoning_effort: "much" }],
    ["verbosity", { verbosity: "max" }],
    ["parallel_tool_calls", { parallel_tool_calls: "no" }],
    ["service_tier", { service_tier: "gold" }],
    ["safety_identifier", { safety_identifier: "x".repeat(65) }],
    ["prompt_cache_key", { prompt_cache_key: "x".repeat(65) }],
    ["user", { user: "x".repeat(513) }],
  ];
  for (const [param, setting] of refused) {
    it(`are refused beyond their bounds: ${JSON.stringify(setting).slice(0, 60)}`, async () => {
      for (const path of ["/ai/chat", "/v1/chat/completions"]) {
        const response = await client.post(path, { model: "gpt-5.4-nano", messages, ...setting });
        expect([response.status, response.at("error.param")]).to.deep.equal([400, param]);
      }
    });
  }

  it("are refused under two names that differ, and taken under two that agree", async () => {
    const body = { model: "gpt-5.4-nano", messages, responseFormat: { type: "json_object" } };
    const agreed = await client.post("/ai/chat", { ...body, response_format: { type: "json_object" } });
    expect(agreed.status).to.equal(200);
    const pairs = [
      ["reasoningEffort", "low", "reasoning_effort", "high"],
      ["serviceTier", "flex", "service_tier", "auto"],
      ["topP", 0.1, "top_p", 0.2],
      ["responseFormat", { type: "text" }, "response_format", { type: "json_object" }],
    ] as const;
    for (const [camel, one, snake, other] of pairs) {
      const differing = await client.post("/ai/chat", {
        model: "gpt-5.4-nano",
        messages,
        [camel]: one,
        [snake]: other,
      });
      expect([differing.status, differing.at("error.param")]).to.deep.equal([400, snake]);
    }
  });
});
