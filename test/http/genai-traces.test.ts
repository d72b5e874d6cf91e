import * as conventions from "@opentelemetry/semantic-conventions/incubating";
import { expect } from "chai";
import { pino } from "pino";
import { startTracing } from "../../src/observe/start-tracing.ts";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { type CollectedSpan, startTraceCollector, type TraceCollector } from "../support/trace-collector.ts";

const names = new Set<unknown>(
  Object.entries(conventions).flatMap(([key, name]) => (key.startsWith("ATTR_") ? [name] : [])),
);
const operations = new Set<unknown>(
  Object.entries(conventions).flatMap(([key, name]) => (key.startsWith("GEN_AI_OPERATION_NAME_VALUE_") ? [name] : [])),
);
const usage = { prompt_tokens: 100, completion_tokens: 30, cached_tokens: 60, reasoning_tokens: 20 };
const secret = "Where does the walrus sleep?";

describe("the traces of calls of models", function () {
  this.timeout(60_000);
  let collector: TraceCollector;
  let upstream: FakeProvider;
  let test: TestPlatform;
  let member: ApiClient;
  let tracing: Awaited<ReturnType<typeof startTracing>> | undefined;
  before(async () => {
    [collector, upstream] = await Promise.all([startTraceCollector(), startFakeProvider()]);
    test = await startPlatform({
      env: {
        OPENAI_API_KEY: "sk-of-the-platform-0123456789",
        OPENAI_BASE_URL: upstream.url,
        ANTHROPIC_API_KEY: "sk-ant-of-the-platform-0123456789",
        ANTHROPIC_BASE_URL: upstream.origin,
        PROVIDER_MAX_ATTEMPTS: "1",
      },
    });
    member = makeClient({ url: test.url, key: test.keys.member });
  });
  after(async () => {
    await tracing?.close();
    await test.close();
    await upstream.close();
    await collector.close();
  });

  /** The spans of what `work` does, once they were sent. */
  const spansOf = async (work: () => Promise<unknown>): Promise<CollectedSpan[]> => {
    const known = collector.spans.length;
    const config = { endpoint: collector.url, headers: {}, share: 1, serviceName: undefined };
    tracing = await startTracing({ config, process: "worker", logger: pino({ level: "silent" }) });
    try {
      await work();
    } finally {
      await tracing.close();
      tracing = undefined;
    }
    return collector.spans.slice(known);
  };
  const find = (spans: readonly CollectedSpan[], operation: string) => {
    const found = spans.filter(({ attributes }) => attributes["gen_ai.operation.name"] === operation);
    if (found.length === 0)
      throw new Error(`no span of ${operation} among ${spans.map(({ name }) => name).join(", ")}`);
    return found as [CollectedSpan, ...CollectedSpan[]];
  };
  const numbersOf = ({ attributes }: CollectedSpan) =>
    Object.fromEntries(
      Object.entries(attributes).flatMap(([key, value]) =>
        key.startsWith("gen_ai.usage.") ? [[key.slice(13), Number(value)]] : [],
      ),
    );

  for (const isStream of [false, true]) {
    it(`say what ${isStream ? "a stream" : "a call"} used, how it ended, what its provider calls it and what it cost`, async () => {
      upstream.next({ usage, finishReason: "length" });
      const body = {
        model: "gpt-4.1",
        messages: [{ role: "user", content: secret }],
        stream: isStream,
        maxTokens: 500,
      };
      let costUsd = 0;
      const spans = await spansOf(async () => {
        if (!isStream) costUsd = Number((await member.post("/ai/chat", body)).at("costUsd"));
        else await Array.fromAsync((await member.events("POST", "/ai/chat", { body })).events);
      });
      const [chat, second] = find(spans, "chat");
      expect([chat.name, chat.kind, second]).to.deep.equal(["chat gpt-4.1", 3, undefined]);
      expect(numbersOf(chat)).to.deep.equal({
        input_tokens: 100,
        output_tokens: 30,
        "cache_read.input_tokens": 60,
        "reasoning.output_tokens": 20,
      });
      const { attributes } = chat;
      expect(attributes).to.include({
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4.1",
        "gen_ai.response.model": "gpt-4.1",
        "gen_ai.request.stream": isStream,
      });
      expect(attributes["gen_ai.response.id"]).to.match(/^chatcmpl/);
      expect(attributes["gen_ai.response.finish_reasons"]).to.deep.equal({ values: [{ stringValue: "length" }] });
      expect(Number(attributes["gen_ai.request.max_tokens"])).to.equal(500);
      expect(Number(attributes["switchyard.cost_usd"])).to.be.closeTo((40 * 2 + 60 * 0.5 + 30 * 8) / 1e6, 1e-9);
      if (!isStream) expect(Number(attributes["switchyard.cost_usd"])).to.equal(costUsd);
    });
  }

  it("say the same of Claude's messages, as they are forwarded", async () => {
    upstream.next({ usage });
    const model = "claude-haiku-4-5-20251001";
    const spans = await spansOf(() =>
      member.post("/v1/messages", { model, max_tokens: 100, messages: [{ role: "user", content: secret }] }),
    );
    const [chat] = find(spans, "chat");
    expect(numbersOf(chat)).to.include({ input_tokens: 100, output_tokens: 30, "cache_read.input_tokens": 60 });
    expect(chat.attributes["gen_ai.response.id"]).to.match(/^msg_/);
  });

  it("show the run of an agent with its calls of models and tools, by the session as the conversation", async () => {
    const made = await member.post("/agents", {
      name: "Clerk",
      model: "gpt-4.1",
      systemPrompt: "Help.",
      tools: [{ type: "calculator" }],
    });
    upstream.next(
      { toolCalls: [{ id: "call_1", name: "calculator", arguments: '{"expression":"1+1"}' }] },
      { pieces: ["2"] },
    );
    const agentId = made.string("agentId");
    const spans = await spansOf(() => member.post(`/agents/${agentId}/run`, { input: secret, sessionId: "conv-7" }));
    const [agent] = find(spans, "invoke_agent");
    const [tool] = find(spans, "execute_tool");
    const chats = find(spans, "chat");
    expect([agent.name, agent.kind, tool.name, chats.length]).to.deep.equal([
      "invoke_agent Clerk",
      1,
      "execute_tool calculator",
      2,
    ]);
    expect(agent.attributes).to.include({
      "gen_ai.agent.id": agentId,
      "gen_ai.agent.name": "Clerk",
      "gen_ai.request.model": "gpt-4.1",
    });
    expect(tool.attributes).to.include({
      "gen_ai.tool.name": "calculator",
      "gen_ai.tool.type": "function",
      "gen_ai.tool.call.id": "call_1_1",
    });
    for (const span of [agent, tool, ...chats])
      expect(span.attributes["gen_ai.conversation.id"], span.name).to.equal("conv-7");
    for (const span of [tool, ...chats]) expect(span.parentSpanId, span.name).to.equal(agent.spanId);
  });

  it("show retrievals and embeddings", async () => {
    const spans = await spansOf(async () => {
      await member.post("/v1/embeddings", { model: "text-embedding-3-small", input: "one two", dimensions: 2 });
      await member.post("/rag/query", { query: secret, collection: "default", topK: 3 });
    });
    const embeddings = find(spans, "embeddings");
    const [retrieval] = find(spans, "retrieval");
    expect(embeddings[0].attributes).to.include({
      "gen_ai.provider.name": "openai",
      "gen_ai.request.model": "text-embedding-3-small",
    });
    expect(numbersOf(embeddings[0]).input_tokens).to.be.above(0);
    expect(Number(embeddings[0].attributes["gen_ai.embeddings.dimension.count"])).to.equal(2);
    expect([retrieval.name, retrieval.attributes["gen_ai.data_source.id"]]).to.deep.equal([
      "retrieval default",
      "default",
    ]);
  });

  it("have names of the conventions alone, and no texts", () => {
    const own = collector.spans
      .flatMap(({ attributes }) => Object.keys(attributes))
      .filter((name) => name.startsWith("gen_ai."));
    expect([...new Set(own)].filter((name) => !names.has(name))).to.deep.equal([]);
    const used = collector.spans.flatMap(({ attributes }) => attributes["gen_ai.operation.name"] ?? []);
    expect([...new Set(used)].filter((name) => !operations.has(name))).to.deep.equal([]);
    expect(collector.text()).not.to.match(/walrus|sk-of-the-platform/);
  });
});
