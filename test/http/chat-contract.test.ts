import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { parseDataLines, postBytes, postRaw } from "../support/raw-http.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const messages = [{ role: "user", content: "What does a lease protect?" }];
const answer = "The lease protects a job.";
const providers = {
  edge: undefined, // no name: the default
  openai: "gpt-5.4-nano",
  anthropic: "claude-haiku-5-5",
};
const served = { edge: "llama-test", openai: "gpt-5.4-nano", anthropic: "claude-haiku-5-5" };

/** The interface's chat contract, byte for byte: through `node:http` and a bare socket, never through a client. */
describe("chat contract on the wire", () => {
  let fake: FakeProvider;
  let test: TestPlatform;
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
  });
  afterEach(() => fake.reset());
  after(async () => {
    await test.close();
    await fake.close();
  });

  const post = (body: object, headers?: Record<string, string>) =>
    postRaw(`${test.url}/ai/chat`, { key: test.keys.member, body, ...(headers ? { headers } : {}) });
  const postJson = async (body: object, headers?: Record<string, string>) => {
    const { status, text } = await post(body, headers);
    return { status, body: JSON.parse(text) };
  };
  const errorOf = async (body: object, headers?: Record<string, string>) => {
    const response = await postJson(body, headers);
    return [response.status, response.body.error.code, response.body.error.param];
  };

  for (const [provider, name] of Object.entries(providers)) {
    const model = name === undefined ? {} : { model: name };
    const id = served[provider as keyof typeof served]; // the keys of both are the same

    it(`answers JSON with the interface's fields and their types (${provider})`, async () => {
      const { status, headers, text } = await post({ messages, ...model });
      expect(status).to.equal(200);
      expect(headers["content-type"]).to.match(/^application\/json/);
      const body = JSON.parse(text);
      const { logId, costUsd, ...rest } = body;
      expect(logId).to.match(/^log_[0-9A-Z]{26}$/);
      expect(costUsd).to.be.a("number");
      expect(costUsd).to.be.at.least(0);
      expect(rest).to.deep.equal({
        text: answer,
        choices: [{ message: { role: "assistant", content: answer }, finish_reason: "stop" }],
        inputTokens: 11,
        outputTokens: 7,
        usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
        cached: false,
        model: id,
      });
    });

    it(`adds toolCalls and reasoning when there are any (${provider})`, async () => {
      fake.next({ reasoning: "Thinking.", toolCalls: [{ id: "call_1", name: "find", arguments: '{"q":"x"}' }] });
      const tools = [{ type: "function", function: { name: "find", parameters: { type: "object" } } }];
      const { body } = await postJson({ messages, ...model, tools });
      expect(body.reasoning).to.equal("Thinking.");
      expect(body.toolCalls).to.deep.equal([
        { id: "call_1", type: "function", function: { name: "find", arguments: '{"q":"x"}' } },
      ]);
      expect(body.choices[0].finish_reason).to.equal("tool_calls");
    });

    it(`streams data lines: deltas, then one final event (${provider})`, async () => {
      const { status, headers, text } = await post({ messages, ...model, stream: true });
      expect(status).to.equal(200);
      expect(headers["content-type"]).to.match(/^text\/event-stream/);
      const events = parseDataLines(text);
      expect(events.slice(0, -1)).to.deep.equal(
        ["The lease ", "protects ", "a job."].map((content) => ({ delta: { content }, done: false })),
      );
      const { logId, costUsd, ...final } = events.at(-1) as Record<string, unknown>; // looked at field by field
      expect(logId).to.match(/^log_[0-9A-Z]{26}$/);
      expect(costUsd).to.be.a("number");
      expect(final).to.deep.equal({
        done: true,
        inputTokens: 11,
        outputTokens: 7,
        finishReason: "stop",
        model: id,
        cached: false,
      });
    });

    it(`reports a stream's failure as its last event (${provider})`, async () => {
      fake.next({ fault: { type: "cut", afterPieces: 1 } });
      const { status, text } = await post({ messages, ...model, stream: true });
      expect(status).to.equal(200);
      const [delta, last, ...rest] = parseDataLines(text) as [unknown, { error: Record<string, unknown> }]; // likewise
      expect(rest).to.deep.equal([]);
      expect(delta).to.deep.equal({ delta: { content: "The lease " }, done: false });
      expect(Object.keys(last).sort()).to.deep.equal(["done", "error"]);
      expect(last).to.include({ done: true });
      expect(last.error).to.include({ type: "upstream_error", code: "provider_failed" });
      expect(last.error.requestId).to.be.a("string");
    });
  }

  it("sends each part when it comes, in chunks of a connection that ends after the last one", async () => {
    fake.next({ pieces: ["one ", "two ", "three"], pieceMs: 120 });
    const { text, arrivals } = await postBytes(`${test.url}/ai/chat`, {
      key: test.keys.member,
      body: { messages, stream: true },
    });
    expect(text).to.match(/^HTTP\/1\.1 200 OK\r\n/);
    expect(text.toLowerCase()).to.contain("\r\ntransfer-encoding: chunked\r\n");
    expect(text.toLowerCase()).to.contain("\r\ncontent-type: text/event-stream");
    expect(text).to.match(/\r\n0\r\n\r\n$/);
    const cameAt = (part: string) => arrivals.find((one) => one.text.includes(part))?.at ?? Number.NaN;
    expect(cameAt("three") - cameAt("one ")).to.be.greaterThan(150);
    expect(text.indexOf('"done":true')).to.be.greaterThan(text.indexOf("three"));
  });

  it("takes every field of the request as the interface says", async () => {
    await post({ messages, systemPrompt: "Be short.", temperature: 2, maxTokens: 50 });
    await post({ messages, temperature: 0, max_tokens: 60 });
    await post({ messages, stream: false });
    expect(fake.requests[0]?.body).to.deep.include({
      model: "llama-test",
      temperature: 2,
      max_tokens: 50,
      messages: [{ role: "system", content: "Be short." }, ...messages],
    });
    expect(fake.requests[1]?.body).to.include({ temperature: 0, max_tokens: 60 });
    const plain = fake.requests[2]?.body;
    expect(plain?.model, "meta-llm is the default").to.equal("llama-test");
    expect(plain).not.to.have.any.keys("temperature", "max_tokens", "stream");
    const three = [{ role: "system", content: "a" }, ...messages, { role: "assistant", content: "b" }];
    await post({ messages: three, model: "meta-llm" });
    expect(fake.requests[3]?.body.messages).to.deep.equal(three);
  });

  it("refuses values that the interface does not allow, naming the field", async () => {
    expect(await errorOf({})).to.deep.equal([400, "invalid_request", "messages"]);
    expect(await errorOf({ messages: [] })).to.deep.equal([400, "invalid_request", "messages"]);
    const wrongRole = { messages: [{ role: "wizard", content: "x" }] };
    expect(await errorOf(wrongRole)).to.deep.equal([400, "invalid_request", "messages[0].role"]);
    for (const temperature of [-0.1, 2.1, "hot"]) {
      expect(await errorOf({ messages, temperature })).to.deep.equal([400, "invalid_request", "temperature"]);
    }
    expect(await errorOf({ messages, maxTokens: 1, max_tokens: 2 })).to.deep.equal([
      400,
      "invalid_request",
      "max_tokens",
    ]);
    expect(await errorOf({ messages, model: "no-such" })).to.deep.equal([400, "unknown_model", "model"]);
    expect(await errorOf({ messages }, { "x-svc-options": "shrink=true" })).to.deep.equal([
      400,
      "invalid_request",
      "x-svc-options",
    ]);
    expect(fake.requests).to.deep.equal([]);
  });

  it("takes the three optional headers", async () => {
    const silent = await postJson({ messages }, { "x-svc-debug": "false" });
    expect(silent.body).not.to.have.property("_preprocessing");
    const { body } = await postJson({ messages }, { "x-svc-debug": "true", "x-svc-options": "compress=true" });
    expect(body._preprocessing.routing).to.deep.include({
      requested: "meta-llm",
      model: "llama-test",
      provider: "edge",
    });
    const { text } = await post({ messages, stream: true }, { "x-svc-debug": "true", "x-svc-surface": "wire-test" });
    expect(parseDataLines(text).at(-1)).to.have.nested.property("_preprocessing.routing.model", "llama-test");
    const client = makeClient({ url: test.url, key: test.keys.member });
    const row = await pollUntil(async () => {
      const rows = (await client.get("/usage?groupBy=surface")).at("data");
      return Array.isArray(rows) ? rows.find((one) => one.surface === "wire-test") : undefined;
    });
    expect(row).to.include({ requests: 1, inputTokens: 11, outputTokens: 7 });
  });

  const cooled: [model: string, sent: object, used: string, at: object][] = [
    ["claude-opus-5", { temperature: 0 }, "temperature;used=1", {}],
    ["gpt-5.5", { temperature: 0.3, top_p: 0.5 }, "temperature;used=1, top_p;used=1", {}],
    ["claude-haiku-4-5-20251001", { temperature: 2 }, "temperature;used=1", { temperature: 1 }],
  ];
  for (const [model, sent, used, at] of cooled) {
    it(`adjusts ${JSON.stringify(sent)} to what ${model} takes, and says so`, async () => {
      for (const stream of [false, true]) {
        const { status, headers, text } = await post({ messages, model, ...sent, stream });
        expect(status, text).to.equal(200);
        expect(headers["x-svc-ignored"]).to.equal(used);
      }
      const sentOn = Object.entries(fake.requests[0]?.body ?? {}).filter(([name]) =>
        /^(temperature|top_p)$/.test(name),
      );
      expect(Object.fromEntries(sentOn)).to.deep.equal(at);
      const asked = fake.requests.length;
      const strict = await errorOf({ messages, model, ...sent }, { "x-svc-options": "strict=true" });
      expect(strict).to.deep.equal([400, "invalid_request", "temperature"]);
      expect(fake.requests).to.have.length(asked);
    });
  }

  it("names its adjustments again for a repeat, and in the same body in debug mode", async () => {
    const body = { messages, model: "gpt-5.5", temperature: 0.3, tone: "kind" };
    for (const debug of [{}, { "x-svc-debug": "true" }]) {
      const headers = { ...debug, "idempotency-key": `adjusted ${JSON.stringify(debug)}` };
      const first = await post(body, headers);
      const repeat = await post(body, headers);
      expect([first.status, repeat.status, repeat.headers["idempotent-replayed"]]).to.deep.equal([200, 200, "true"]);
      expect(first.headers["x-svc-ignored"]).to.equal("tone, temperature;used=1");
      expect(repeat.headers["x-svc-ignored"]).to.equal(first.headers["x-svc-ignored"]);
      expect(repeat.text).to.equal(first.text);
      expect(JSON.parse(repeat.text)._ignored).to.deep.equal(
        "x-svc-debug" in debug ? ["tone", "temperature;used=1"] : undefined,
      );
    }
    expect(fake.requests, "a repeat asks no model").to.have.length(2);
  });

  it("takes null for every optional field as its absence", async () => {
    const at = async (path: string, body: object) =>
      (await postRaw(`${test.url}${path}`, { key: test.keys.member, body })).status;
    const shared = { temperature: null, top_p: null, stop: null, seed: null, response_format: null, max_tokens: null };
    const all = { ...shared, stream: null, tools: null, tool_choice: null };
    const spoken = [...messages, { role: "assistant", content: "It.", tool_calls: null }, ...messages];
    const own = { model: null, maxTokens: null, systemPrompt: null, prefer_async: null };
    expect(await at("/ai/chat", { messages: spoken, ...all, ...own })).to.equal(200);
    const openAi = { model: "meta-llm", n: null, stream_options: null, max_completion_tokens: null };
    expect(await at("/v1/chat/completions", { messages: spoken, ...all, ...openAi })).to.equal(200);
    expect(Object.keys(fake.requests[0]?.body ?? {})).to.deep.equal(["model", "messages"]);
    expect(fake.requests[1]?.body).to.deep.equal(fake.requests[0]?.body);
    const texts = { input: "a job", model: null, dimensions: null, encoding_format: null };
    for (const path of ["/ai/embeddings", "/v1/embeddings"]) expect(await at(path, texts)).to.equal(200);
  });

  it("passes on the other sampling parameters, as OpenAI's surface does", async () => {
    const more = { top_p: 0.4, stop: "END", seed: 7, response_format: { type: "json_object" } };
    expect((await post({ messages, ...more })).status).to.equal(200);
    expect(fake.requests[0]?.body).to.deep.include({ ...more, stop: ["END"] });
  });

  it("takes any text as the surface, folded for analytics", async () => {
    const surfaces = {
      "My Mobile App/2.0": "My-Mobile-App/2.0",
      [`${"long".repeat(40)}`]: "long".repeat(16),
      " ": "api",
    };
    for (const surface of Object.keys(surfaces)) {
      expect((await post({ messages }, { "x-svc-surface": surface })).status, surface).to.equal(200);
    }
    const client = makeClient({ url: test.url, key: test.keys.member });
    for (const surface of Object.values(surfaces)) {
      await pollUntil(async () => {
        const rows = (await client.get("/usage?groupBy=surface")).at("data");
        return Array.isArray(rows) && rows.some((one) => one.surface === surface);
      });
    }
  });

  it("reports a provider's rejections and limits as such", async () => {
    fake.next({ status: 413, errorMessage: "The prompt is too large." });
    const rejected = await postJson({ messages });
    expect([rejected.status, rejected.body.error.code]).to.deep.equal([400, "provider_rejected"]);
    expect(rejected.body.error.message).to.contain("The prompt is too large.");
    fake.setDefault({ status: 429, headers: { "retry-after": "60" } });
    const limited = await post({ messages });
    expect([limited.status, limited.headers["retry-after"]]).to.deep.equal([429, "60"]);
    expect(JSON.parse(limited.text).error.code).to.equal("provider_rate_limited");
  });

  it("counts the tokens of a prompt that compression leaves as it is", async () => {
    const long = [{ role: "user", content: "The marmot whistles in the morning. ".repeat(200) }];
    const { body } = await postJson({ messages: long }, { "x-svc-debug": "true", "x-svc-options": "compress=true" });
    const { originalTokens, compressedTokens } = body._preprocessing.compression;
    expect(originalTokens).to.be.within(1_000, 2_500);
    expect(compressedTokens).to.equal(originalTokens);
  });

  it("routes `auto` and says which model served", async () => {
    const { body } = await postJson(
      { messages: [{ role: "user", content: "Refactor this function" }], model: "auto" },
      { "x-svc-debug": "true" },
    );
    expect(body._preprocessing.routing).to.include({ requested: "auto", model: body.model });
    expect(fake.requests[0]?.body.model).to.equal(body.model);
    expect(body._preprocessing.routing.reason).to.contain("coding");
  });
});
