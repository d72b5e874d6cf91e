import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, type ApiEvent, makeClient, valueAt } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const question = { messages: [{ role: "user", content: "What does a lease protect?" }] };
const keys = { openai: "sk-platform-openai-0123456789", anthropic: "sk-ant-platform-0123456789" };
const models = { openai: "gpt-5.4-nano", anthropic: "claude-haiku-5-5" };
const tools = [{ type: "function", function: { name: "find", description: "Finds", parameters: { type: "object" } } }];
const calls = [
  { id: "toolu_1", name: "find", arguments: '{"q":"lease"}' },
  { id: "toolu_2", name: "find", arguments: "{}" },
];
const wireCalls = calls.map(({ id, name, arguments: text }) => ({
  id,
  type: "function",
  function: { name, arguments: text },
}));

const readAll = async (events: AsyncIterable<ApiEvent>) => {
  const all: ApiEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
};
const textOf = (events: readonly ApiEvent[]) =>
  events.map(({ data }) => (data as { delta?: { content: string } }).delta?.content ?? "").join(""); // the client checked the shape
const reasoningOf = (events: readonly ApiEvent[]) =>
  events.map(({ data }) => (data as { delta?: { reasoning?: string } }).delta?.reasoning ?? "").join(""); // likewise

describe("POST /ai/chat with OpenAI and Anthropic", () => {
  let fakes: Record<"openai" | "anthropic", FakeProvider>;
  let test: TestPlatform;
  let client: ApiClient;
  before(async function () {
    this.timeout(60_000);
    fakes = { openai: await startFakeProvider(), anthropic: await startFakeProvider() };
    test = await startPlatform({
      workers: false,
      env: {
        OPENAI_API_KEY: keys.openai,
        OPENAI_BASE_URL: fakes.openai.url,
        ANTHROPIC_API_KEY: keys.anthropic,
        ANTHROPIC_BASE_URL: fakes.anthropic.origin,
        PROVIDER_FIRST_BYTE_TIMEOUT_MS: "500",
        PROVIDER_ANSWER_TIMEOUT_MS: "500",
        PROVIDER_IDLE_TIMEOUT_MS: "200",
      },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  afterEach(async () => {
    for (const provider of ["openai", "anthropic"] as const) {
      fakes[provider].reset();
      await client.post("/ai/chat", { ...question, model: models[provider] }); // closes the breaker
      fakes[provider].reset();
    }
  });
  after(async () => {
    await test.close();
    await fakes.openai.close();
    await fakes.anthropic.close();
  });

  const stream = async (body: object) => {
    const opened = await client.events("POST", "/ai/chat", { body: { ...question, ...body, stream: true } });
    return readAll(opened.events);
  };

  for (const provider of ["openai", "anthropic"] as const) {
    const model = models[provider];
    describe(provider, () => {
      it("answers with the provider's text, usage and model, and calls it with the platform's key", async () => {
        const response = await client.post("/ai/chat", { ...question, model, maxTokens: 50 });
        expect(response.body).to.include({
          text: "The lease protects a job.",
          model,
          inputTokens: 11,
          outputTokens: 7,
          cached: false,
        });
        expect(response.at("costUsd")).to.be.greaterThan(0);
        const request = fakes[provider].requests[0];
        if (provider === "openai") {
          expect(request?.path).to.equal("/v1/chat/completions");
          expect(request?.headers).to.include({ authorization: `Bearer ${keys.openai}` });
        } else {
          expect(request?.path).to.equal("/v1/messages");
          expect(request?.headers).to.include({ "x-api-key": keys.anthropic, "anthropic-version": "2023-06-01" });
          expect(request?.headers).not.to.have.property("authorization");
        }
      });

      it("streams with the provider's usage at the end, and reasoning apart from the text", async () => {
        fakes[provider].next({ reasoning: "Leases expire." });
        const events = await stream({ model });
        expect(textOf(events)).to.equal("The lease protects a job.");
        expect(reasoningOf(events)).to.equal("Leases expire.");
        expect(events.at(-1)?.data).to.include({ done: true, model, inputTokens: 11, outputTokens: 7 });
        fakes[provider].next({ reasoning: "Leases expire." });
        expect((await client.post("/ai/chat", { ...question, model })).at("reasoning")).to.equal("Leases expire.");
      });

      it("carries parallel tool calls and their results, as JSON and streamed", async () => {
        fakes[provider].setDefault({ toolCalls: calls });
        const response = await client.post("/ai/chat", { ...question, model, tools, tool_choice: "required" });
        expect(response.at("toolCalls")).to.deep.equal(wireCalls);
        expect(response.at("choices[0].finish_reason")).to.equal("tool_calls");
        const events = await stream({ model, tools });
        expect(events.at(-1)?.data).to.deep.include({ toolCalls: wireCalls, finishReason: "tool_calls" });
        const messages = [
          ...question.messages,
          { role: "assistant", content: "", tool_calls: wireCalls },
          { role: "tool", tool_call_id: "toolu_1", content: "found" },
          { role: "tool", tool_call_id: "toolu_2", content: "nothing" },
        ];
        fakes[provider].setDefault({});
        const answered = await client.post("/ai/chat", { messages, model, tools });
        expect(answered.status, answered.text).to.equal(200);
      });

      it("reports a limited answer and a filtered answer", async () => {
        fakes[provider].next({ finishReason: "length" }, { finishReason: "content_filter" });
        const reasonOf = async () =>
          (await client.post("/ai/chat", { ...question, model })).at("choices[0].finish_reason");
        expect([await reasonOf(), await reasonOf()]).to.deep.equal(["length", "content_filter"]);
      });

      it("reports a refused key without showing it, and does not retry", async () => {
        const errorMessage = `invalid key ${keys[provider]}`;
        fakes[provider].setDefault({ status: 401, errorCode: "authentication_error", errorMessage });
        const response = await client.post("/ai/chat", { ...question, model });
        expect([response.status, response.at("error.code")]).to.deep.equal([502, "provider_failed"]);
        expect(response.string("error.message")).to.contain("the platform's key");
        expect(response.text).not.to.contain(keys[provider]);
        expect(fakes[provider].requests).to.have.length(1);
      });
    });
  }

  it("maps a conversation to Anthropic's terms", async () => {
    const messages = [
      { role: "system", content: "Be kind." },
      ...question.messages,
      { role: "assistant", content: "Let me look.", tool_calls: wireCalls },
      { role: "tool", tool_call_id: "toolu_1", content: "found" },
      { role: "tool", tool_call_id: "toolu_2", content: "nothing" },
      { role: "user", content: "And now?" },
    ];
    const body = { messages, model: models.anthropic, systemPrompt: "Be short.", tools };
    const choice = { type: "function", function: { name: "find" } };
    const mark = { cache_control: { type: "ephemeral" } };
    const response = await client.post("/ai/chat", { ...body, tool_choice: choice });
    expect(response.status, response.text).to.equal(200);
    const sent = fakes.anthropic.requests[0]?.body;
    expect(sent).to.deep.include({
      model: models.anthropic,
      max_tokens: 16_384,
      system: [{ type: "text", text: "Be short.\n\nBe kind.", ...mark }],
      tools: [{ name: "find", description: "Finds", input_schema: { type: "object" } }],
      tool_choice: { type: "tool", name: "find" },
    });
    expect(sent?.messages).to.deep.equal([
      { role: "user", content: [{ type: "text", text: "What does a lease protect?", ...mark }] },
      {
        role: "assistant",
        content: [
          { type: "text", text: "Let me look." },
          { type: "tool_use", id: "toolu_1", name: "find", input: { q: "lease" } },
          { type: "tool_use", id: "toolu_2", name: "find", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "toolu_1", content: "found" },
          { type: "tool_result", tool_use_id: "toolu_2", content: "nothing" },
          { type: "text", text: "And now?", ...mark },
        ],
      },
    ]);
  });

  it("sends instructions without a message to Anthropic as a message", async () => {
    const system = (content: string) => ({ role: "system", content });
    const messages = [system("Be kind."), system("Say hello.")];
    const response = await client.post("/ai/chat", { messages, model: models.anthropic });
    expect(response.status, response.text).to.equal(200);
    expect(fakes.anthropic.requests[0]?.body).to.deep.include({
      system: "Be kind.",
      messages: [{ role: "user", content: "Say hello." }],
    });
  });

  it("sends OpenAI the token limit by the name that its reasoning models take", async () => {
    await client.post("/ai/chat", { ...question, model: models.openai, max_tokens: 77 });
    expect(fakes.openai.requests[0]?.body).to.deep.equal({
      model: models.openai,
      messages: question.messages,
      max_completion_tokens: 77,
    });
  });

  it("calls OpenAI's models by the Responses API if Chat Completions cannot serve the request", async () => {
    const cases: [path: string, body: object][] = [
      ["/v1/chat/completions", { model: "gpt-6-astra" }],
      ["/v1/responses", { model: "gpt-6-astra", tools }],
      ["/v1/responses", { model: "gpt-6-luna", tools }],
      ["/v1/chat/completions", { model: "gpt-6-luna", tools, reasoning_effort: "none" }],
      ["/v1/chat/completions", { model: "gpt-5.4", tools }],
      ["/v1/responses", { model: "gpt-5.4", tools, reasoning_effort: "low" }],
      ["/v1/chat/completions", { model: "gpt-5.4", tools, temperature: 0 }],
      ["/v1/chat/completions", { model: "gpt-4.1", tools, temperature: 0 }],
    ];
    for (const [path, body] of cases) {
      fakes.openai.reset();
      const response = await client.post("/ai/chat", { ...question, ...body });
      expect(response.status, response.text).to.equal(200);
      expect(fakes.openai.requests[0]?.path, JSON.stringify(body)).to.equal(path);
    }
  });

  it("leaves out a temperature that a model does not take while it reasons, and names it", async () => {
    const body = { ...question, model: "gpt-5.4", temperature: 0.2, tools };
    const cool = await client.post("/ai/chat", body);
    expect(cool.headers.get("x-svc-ignored")).to.equal(null);
    expect(fakes.openai.requests[0]?.body).to.include({ temperature: 0.2, reasoning_effort: "none" });
    const reasoned = await client.post("/ai/chat", { ...body, reasoning_effort: "high" });
    expect(reasoned.headers.get("x-svc-ignored")).to.equal("temperature;used=1");
    expect(fakes.openai.requests[1]?.body).to.deep.include({ reasoning: { effort: "high" } });
    expect(fakes.openai.requests[1]?.body).not.to.have.property("temperature");
  });

  it("calls tools with a model that always reasons, as JSON and streamed", async () => {
    const model = "gpt-6-astra";
    fakes.openai.setDefault({ reasoning: "A lease expires.", toolCalls: calls });
    const body = { ...question, model, tools, tool_choice: "required", maxTokens: 50, parallel_tool_calls: true };
    const response = await client.post("/ai/chat", body);
    expect(response.at("toolCalls"), response.text).to.deep.equal(wireCalls);
    expect(response.at("choices[0].finish_reason")).to.equal("tool_calls");
    expect(response.at("reasoning")).to.equal("A lease expires.");
    expect(fakes.openai.requests[0]?.body).to.deep.equal({
      model,
      input: question.messages,
      store: false,
      include: ["reasoning.encrypted_content"],
      max_output_tokens: 50,
      tools: [{ type: "function", name: "find", description: "Finds", parameters: { type: "object" }, strict: false }],
      tool_choice: "required",
      parallel_tool_calls: true,
    });
    const events = await stream({ model, tools });
    expect(events.at(-1)?.data).to.deep.include({ toolCalls: wireCalls, finishReason: "tool_calls", inputTokens: 11 });
    expect(reasoningOf(events)).to.equal("A lease expires.");
    fakes.openai.setDefault({});
    const messages = [
      ...question.messages,
      { role: "assistant", content: "", tool_calls: wireCalls },
      { role: "tool", tool_call_id: "toolu_1", content: "found" },
      { role: "tool", tool_call_id: "toolu_2", content: "nothing" },
    ];
    expect((await client.post("/ai/chat", { messages, model, tools })).at("text")).to.equal(
      "The lease protects a job.",
    );
  });

  it("sends the key of OpenAI's prompt cache, and charges what was read and written at its prices", async () => {
    const usage = { prompt_tokens: 4_321, completion_tokens: 17, cached_tokens: 3_072, cache_write_tokens: 1_111 };
    fakes.openai.setDefault({ usage });
    // USD a million tokens of GPT-6 Astra: input 10, output 50, read from the cache 1, written to it 12.5.
    const costUsd = ((4_321 - 3_072 - 1_111) * 10 + 17 * 50 + 3_072 * 1 + 1_111 * 12.5) / 1e6;
    for (const path of ["/v1/responses", "/v1/chat/completions"]) {
      const more = path === "/v1/responses" ? { tools } : {};
      const body = { ...question, model: "gpt-6-astra", prompt_cache_key: "run_1", ...more };
      const response = await client.post("/ai/chat", body);
      const request = fakes.openai.requests.at(-1);
      expect([request?.path, request?.body.prompt_cache_key]).to.deep.equal([path, "run_1"]);
      await test.platform.gateway.flush();
      const log = await client.get(`/ai/logs/${response.string("logId")}`);
      expect(log.at("costUsd"), path).to.be.closeTo(costUsd, 1e-10);
      expect((await stream(body)).at(-1)?.data).to.include({ costUsd: response.at("costUsd") });
    }
  });

  it("reports a failed response of OpenAI as the error that it is", async () => {
    const body = { ...question, model: "gpt-6-astra", tools };
    const failures = {
      invalid_prompt: [400, "provider_rejected"],
      rate_limit_exceeded: [429, "provider_rate_limited"],
    };
    for (const [code, expected] of Object.entries(failures)) {
      fakes.openai.setDefault({ failure: { code, message: "The prompt is refused." } });
      const response = await client.post("/ai/chat", body);
      expect([response.status, response.at("error.code")], code).to.deep.equal(expected);
      const opened = await client.post("/ai/chat", { ...body, stream: true });
      expect([opened.status, opened.at("error.code")], `${code}, streamed`).to.deep.equal(expected);
    }
  });

  it("embeds with OpenAI's models", async () => {
    const response = await client.post("/ai/embeddings", { input: ["abc", "de"], model: "text-embedding-3-small" });
    expect(response.at("data[1].embedding")).to.deep.equal([2, 1, 0.5, -1]);
    expect(response.at("usage.prompt_tokens")).to.equal(fakes.openai.served(keys.openai).inputTokens);
  });

  it("counts the whole prompt, including the part in the provider's cache", async () => {
    const usage = { prompt_tokens: 1_000, completion_tokens: 10, cached_tokens: 600, cache_write_tokens: 300 };
    fakes.anthropic.setDefault({ usage });
    const response = await client.post("/ai/chat", { ...question, model: models.anthropic });
    expect(response.body).to.include({ inputTokens: 1_000, outputTokens: 10 });
    const end = (await stream({ model: models.anthropic })).at(-1)?.data;
    expect(end).to.include({ inputTokens: 1_000, outputTokens: 10, costUsd: response.at("costUsd") });
    const reported = {
      prompt_tokens: 1_000,
      completion_tokens: 10,
      total_tokens: 1_010,
      prompt_tokens_details: { cached_tokens: 600 },
      cache_read_input_tokens: 600,
      cache_creation_input_tokens: 300,
    };
    expect([response.at("usage"), valueAt(end, "usage")]).to.deep.equal([reported, reported]);
    const body = { model: models.anthropic, messages: question.messages };
    const openAi = await client.post("/v1/chat/completions", body);
    const { events } = await client.events("POST", "/v1/chat/completions", {
      body: { ...body, stream: true, stream_options: { include_usage: true } },
    });
    const chunks = await readAll(events);
    expect([openAi.at("usage"), valueAt(chunks.at(-2)?.data, "usage")]).to.deep.equal([reported, reported]);
  });
});
