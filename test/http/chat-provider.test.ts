import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, type ApiEvent, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const question = { messages: [{ role: "user", content: "What does a lease protect?" }] };
const edgeKey = "sk-edge-secret-0123456789";

const readAll = async (events: AsyncIterable<ApiEvent>) => {
  const all: ApiEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
};

describe("POST /ai/chat with an OpenAI-compatible server", () => {
  let fake: FakeProvider;
  let test: TestPlatform;
  let client: ApiClient;
  let surfaces = 0;
  before(async function () {
    this.timeout(60_000);
    fake = await startFakeProvider();
    test = await startPlatform({
      workers: false,
      env: {
        EDGE_BASE_URL: fake.url,
        EDGE_API_KEY: edgeKey,
        EDGE_MODEL: "llama-test",
        EDGE_EMBEDDING_MODEL: "embed-test",
        PROVIDER_FIRST_BYTE_TIMEOUT_MS: "500",
        PROVIDER_ANSWER_TIMEOUT_MS: "500",
        PROVIDER_IDLE_TIMEOUT_MS: "200",
      },
    });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  afterEach(async () => {
    fake.reset();
    await client.post("/ai/chat", question); // a success closes the breaker that a test may have brought near to opening
    fake.reset();
  });
  after(async () => {
    await test.close();
    await fake.close();
  });

  const stream = async (body: object = {}, headers: Record<string, string> = {}) => {
    const opened = await client.events("POST", "/ai/chat", { body: { ...question, ...body, stream: true }, headers });
    return readAll(opened.events);
  };
  const textOf = (events: readonly ApiEvent[]) =>
    events.map(({ data }) => (data as { delta?: { content: string } }).delta?.content ?? "").join(""); // the client checked the shape
  const nextSurface = () => `s${++surfaces}`;
  /** The counters of a surface, once a call with it was counted. */
  const usageOf = (surface: string) =>
    pollUntil(async () => {
      const rows = (await client.get("/usage?groupBy=surface")).at("data");
      return Array.isArray(rows) ? rows.find((row) => row.surface === surface) : undefined;
    });

  it("passes the request on and answers with the server's text, usage and model", async () => {
    const body = { ...question, systemPrompt: "Be short.", temperature: 0.3, maxTokens: 50 };
    const response = await client.post("/ai/chat", body);
    expect(response.body).to.include({
      text: "The lease protects a job.",
      model: "llama-test",
      inputTokens: 11,
      outputTokens: 7,
    });
    expect(fake.requests[0]?.headers.authorization).to.equal(`Bearer ${edgeKey}`);
    expect(fake.requests[0]?.body).to.deep.equal({
      model: "llama-test",
      messages: [{ role: "system", content: "Be short." }, ...question.messages],
      temperature: 0.3,
      max_tokens: 50,
    });
  });

  it("streams, with the usage of the server at the end", async () => {
    const events = await stream();
    expect(textOf(events)).to.equal("The lease protects a job.");
    expect(events.at(-1)?.data).to.include({ done: true, inputTokens: 11, outputTokens: 7, finishReason: "stop" });
  });

  it("sends each part before the rest has arrived", async () => {
    fake.next({ pieces: ["first", "second"], pieceMs: 150 });
    const opened = await client.events("POST", "/ai/chat", { body: { ...question, stream: true } });
    const first = await opened.events.next();
    const upstream = await Promise.race([fake.requests[0]?.ended, "it still sends"]);
    expect([textOf([first.value]), upstream]).to.deep.equal(["first", "it still sends"]);
    await readAll(opened.events);
  });

  it("carries tools in both directions, as JSON and streamed", async () => {
    const call = { id: "call_7", name: "find", arguments: '{"q":"lease"}' };
    const wireCall = { id: "call_7", type: "function", function: { name: "find", arguments: '{"q":"lease"}' } };
    const tools = [
      { type: "function", function: { name: "find", description: "Finds", parameters: { type: "object" } } },
    ];
    fake.next({ toolCalls: [call] }, { toolCalls: [call] });
    const response = await client.post("/ai/chat", { ...question, tools, tool_choice: "auto" });
    expect(response.at("toolCalls")).to.deep.equal([wireCall]);
    expect(response.at("choices[0].message.tool_calls")).to.deep.equal([wireCall]);
    expect(response.at("choices[0].finish_reason")).to.equal("tool_calls");
    expect(fake.requests[0]?.body).to.deep.include({ tools, tool_choice: "auto" });
    const events = await stream({ tools });
    expect(events.at(-1)?.data).to.deep.include({ toolCalls: [wireCall], finishReason: "tool_calls" });
    const messages = [
      ...question.messages,
      { role: "assistant", content: "", tool_calls: [wireCall] },
      { role: "tool", tool_call_id: "call_7", content: "found" },
    ];
    await client.post("/ai/chat", { messages, tools });
    expect(fake.requests[2]?.body.messages).to.deep.equal([
      question.messages[0],
      { role: "assistant", content: null, tool_calls: [wireCall] },
      { role: "tool", content: "found", tool_call_id: "call_7" },
    ]);
  });

  it("reports reasoning and a content filter", async () => {
    fake.next({ reasoning: "Leases expire.", finishReason: "content_filter", pieces: ["No."] });
    const response = await client.post("/ai/chat", question);
    expect([response.at("reasoning"), response.at("choices[0].finish_reason")]).to.deep.equal([
      "Leases expire.",
      "content_filter",
    ]);
  });

  it("retries after 429 with Retry-After and after 500, as JSON and streamed", async () => {
    fake.next({ status: 429, headers: { "retry-after": "1" } });
    const startedAt = performance.now();
    const response = await client.post("/ai/chat", question);
    expect(response.status).to.equal(200);
    expect(performance.now() - startedAt).to.be.greaterThan(950);
    expect((await client.get(`/ai/logs/${response.string("logId")}`)).at("attempts")).to.equal(2);
    fake.next({ status: 500 }, { fault: { type: "reset" } });
    expect(textOf(await stream())).to.equal("The lease protects a job.");
    expect(fake.requests).to.have.length(5);
  });

  it("gives up after three attempts with 502 and the upstream's status and code, without its headers or keys", async () => {
    const surface = nextSurface();
    fake.setDefault({
      status: 503,
      errorCode: "overloaded",
      errorMessage: `bad key ${edgeKey}`,
      headers: { "x-upstream": "secret" },
    });
    const response = await client.post("/ai/chat", question, { headers: { "x-svc-surface": surface } });
    expect([response.status, response.at("error.code")]).to.deep.equal([502, "provider_failed"]);
    expect(response.at("error.details")).to.deep.equal({ status: 503, code: "overloaded", provider: "bad key [key]" });
    expect(fake.requests).to.have.length(3);
    expect(response.text).not.to.contain(edgeKey).and.not.to.contain("x-upstream");
    expect(await usageOf(surface)).to.include({ requests: 1, errors: 1, inputTokens: 0, outputTokens: 0 });
  });

  it("does not repeat a refused request, and answers a stream's early failure with a status", async () => {
    fake.setDefault({ status: 400, errorCode: "context_length_exceeded", errorMessage: `Too long for ${edgeKey}.` });
    const response = await client.post("/ai/chat", { ...question, stream: true });
    expect([response.status, response.at("error.code")]).to.deep.equal([400, "provider_rejected"]);
    expect(response.at("error.message")).to.equal("The provider rejected the request: Too long for [key].");
    expect(response.at("error.details")).to.deep.equal({
      status: 400,
      code: "context_length_exceeded",
      message: "Too long for [key].",
      provider: "Too long for [key].",
    });
    expect(fake.requests).to.have.length(1);
  });

  it("answers 504 to a silent server, and 502 to one that answers nonsense", async () => {
    fake.next({ firstByteMs: 5_000 });
    const silent = await client.post("/ai/chat", question);
    expect([silent.status, silent.at("error.code")]).to.deep.equal([504, "provider_timeout"]);
    fake.setDefault({ rawBody: "<html>hello</html>" });
    const nonsense = await client.post("/ai/chat", question);
    expect([nonsense.status, nonsense.at("error.details")]).to.deep.equal([502, { code: "malformed_answer" }]);
  });

  it("ends a stream that breaks in the middle with an error event, and charges what was served", async () => {
    const faults = ["cut", "short", "stall", "malformed", "error-event"] as const;
    for (const type of faults) {
      const surface = nextSurface();
      fake.next({ fault: { type, afterPieces: 2 } });
      const events = await stream({}, { "x-svc-surface": surface });
      expect(textOf(events), type).to.equal("The lease protects ");
      const last = events.at(-1)?.data as { done: boolean; error: { code: string } }; // looked at field by field below
      expect([last.done, last.error.code], type).to.deep.equal([
        true,
        type === "stall" ? "provider_timeout" : "provider_failed",
      ]);
      expect(last).not.to.have.property("logId");
      const usage = await usageOf(surface);
      expect(usage, type).to.include({ requests: 1, errors: 1 });
      expect(usage.inputTokens, type).to.be.within(5, 15);
      expect(usage.outputTokens, type).to.be.within(3, 5);
    }
    expect(fake.requests).to.have.length(faults.length);
  });

  it("aborts the upstream within a second when the client leaves, and still charges", async () => {
    for (const isStreamed of [true, false]) {
      const surface = nextSurface();
      fake.reset();
      fake.next(
        isStreamed ? { pieces: ["one ", "two ", ...Array(100).fill("more ")], pieceMs: 100 } : { firstByteMs: 450 },
      );
      const controller = new AbortController();
      const call = fetch(`${test.url}/ai/chat`, {
        method: "POST",
        signal: controller.signal,
        headers: {
          authorization: `Bearer ${test.keys.member}`,
          "content-type": "application/json",
          "x-svc-surface": surface,
        },
        body: JSON.stringify({ ...question, stream: isStreamed }),
      });
      if (isStreamed) await (await call).body?.getReader().read();
      else await pollUntil(() => fake.requests.length > 0);
      controller.abort();
      await call.catch(() => undefined);
      expect(await fake.requests[0]?.ended).to.equal("broken");
      const usage = await usageOf(surface);
      expect(usage).to.include({ requests: 1, errors: 0 });
      expect(usage.inputTokens).to.be.within(5, 15);
      if (isStreamed) expect(usage.outputTokens).to.be.within(1, 5);
    }
  });

  it("counts tokens itself when the server reports no usage", async () => {
    fake.setDefault({ usage: false });
    const response = await client.post("/ai/chat", question);
    expect(response.at("inputTokens")).to.be.within(5, 15);
    expect(response.at("outputTokens")).to.be.within(4, 8);
    expect((await client.get(`/ai/logs/${response.string("logId")}`)).at("usageSource")).to.equal("estimate");
    const last = (await stream()).at(-1)?.data;
    expect(last).to.include({ inputTokens: response.at("inputTokens"), outputTokens: response.at("outputTokens") });
  });

  it("stops calling a server that keeps failing, and resumes when it recovers", async () => {
    fake.setDefault({ status: 500 });
    await client.post("/ai/chat", question);
    await client.post("/ai/chat", question);
    const before = fake.requests.length;
    expect(before).to.equal(5);
    const refused = await client.post("/ai/chat", question);
    expect([refused.status, refused.at("error.details")]).to.deep.equal([502, { code: "breaker_open" }]);
    expect(fake.requests).to.have.length(before);
    fake.setDefault({});
    await pollUntil(async () => (await client.post("/ai/chat", question)).status === 200);
  });

  it("keeps concurrent streams apart", async () => {
    fake.setDefault({ pieceMs: 3 });
    const names = Array.from({ length: 40 }, (_, n) => `stream-${n}`);
    fake.next(...names.map((name) => ({ pieces: Array<string>(10).fill(`${name} `), pieceMs: 3 })));
    const all = await Promise.all(names.map(() => stream()));
    const texts = all.map(textOf);
    for (const text of texts) expect(new Set(text.trim().split(" ")).size).to.equal(1);
    expect(new Set(texts).size).to.equal(names.length);
    expect(texts.every((text) => text.trim().split(" ").length === 10)).to.equal(true);
  });
});
