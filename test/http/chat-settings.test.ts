import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { postRaw } from "../support/raw-http.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const messages = [{ role: "user", content: "What does a lease protect?" }];
const tools = [{ type: "function", function: { name: "find", parameters: { type: "object" } } }];

/** As OpenAI's API names them, and with values that it takes. */
const openAiSettings = {
  reasoning_effort: "low",
  verbosity: "low",
  metadata: { order: "o-17" },
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
      env: { OPENAI_API_KEY: "sk-platform-openai", OPENAI_BASE_URL: fake.url },
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
        metadata: { order: "o-17" },
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

  it("are absent from a call that does not name them", async () => {
    await client.post("/ai/chat", { model: "gpt-5.4-nano", messages });
    expect(Object.keys(fake.requests[0]?.body ?? {})).to.have.members(["model", "messages"]);
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
