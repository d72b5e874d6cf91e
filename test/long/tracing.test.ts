import { expect } from "chai";
import { type AgentUpstream, startAgentUpstream } from "../support/agent-upstream.ts";
import { makeClient } from "../support/http-client.ts";
import { startProcess } from "../support/processes.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { startTraceCollector, type TraceCollector } from "../support/trace-collector.ts";

const model = "gpt-5.4-mini";
const traceId = "0af7651916cd43dd8448eb211c80319c";
const clientSpan = "b7ad6b7169203331";
const [server, client, producer, consumer] = [2, 3, 4, 5]; // kinds of spans in OTLP

describe("traces", () => {
  let collector: TraceCollector;
  let upstream: AgentUpstream;
  let platform: TestPlatform;
  before(async () => {
    [collector, upstream] = [await startTraceCollector(), await startAgentUpstream()];
    platform = await startPlatform({
      workers: false,
      env: { OPENAI_API_KEY: "sk-of-the-platform", OPENAI_BASE_URL: upstream.url, PROVIDER_MAX_ATTEMPTS: "1" },
    });
  });
  after(async () => {
    await platform.close();
    await upstream.close();
    await collector.close();
  });

  /** Runs `work` against an API and a worker of their own, and ends them: what they traced is sent then. */
  const withProcesses = async (env: Record<string, string>, work: (url: string) => Promise<void>) => {
    const all = { ...platform.env, ...env, LOG_LEVEL: "info" };
    const lines: string[] = [];
    const hear = (text: string) => lines.push(text);
    const processes = await Promise.all([
      startProcess("api/server.ts", all, hear),
      startProcess("workers/main.ts", all, hear),
    ]);
    try {
      await work(String(processes[0].ready.url));
    } finally {
      const codes = await Promise.all(processes.map((each) => each.stop()));
      expect(codes).to.deep.equal([0, 0]);
    }
    return lines.join("");
  };
  const runAgent = async (url: string, input: string, headers: Record<string, string> = {}) => {
    const caller = makeClient({ url, key: platform.keys.owner });
    const agent = await caller.post("/agents", {
      name: "Desk",
      model,
      systemPrompt: "You keep the desk.",
      tools: [{ type: "calculator", config: {} }],
    });
    return caller.post(`/agents/${agent.string("agentId")}/run`, { input }, { headers });
  };

  it("go from a client's request through API, queue and worker to the provider's call", async () => {
    upstream.play(({ turn }) =>
      turn === 1
        ? { calls: [{ name: "calculator", arguments: { expression: "2 + 2" } }] }
        : { text: "Under the lighthouse." },
    );
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
      OTEL_EXPORTER_OTLP_HEADERS: "x-collector-key=abc%20def",
    };
    const log = await withProcesses(env, async (url) => {
      const headers = { traceparent: `00-${traceId}-${clientSpan}-01` };
      expect((await runAgent(url, "Where does the walrus sleep?", headers)).status).to.equal(200);
    });
    const ours = collector.spans.filter((span) => span.traceId === traceId);
    const find = (name: string) => {
      const [found, second] = ours.filter((span) => span.name === name);
      if (!found || second) throw new Error(`not one span ${name}, but ${ours.map((span) => span.name).join(", ")}`);
      return found;
    };
    const request = find("POST /agents/:id/run");
    const publish = find("agent-runs publish");
    const process = find("agent-runs process");
    const agent = find("invoke_agent Desk");
    const tool = find("execute_tool calculator");
    const [call, next] = ours.filter((span) => span.name === `chat ${model}`);
    expect([call, next, tool].map((span) => span?.parentSpanId)).to.deep.equal(Array(3).fill(agent.spanId));
    expect(agent.parentSpanId).to.equal(process.spanId);
    expect([request, publish, process, call].map((span) => span?.kind)).to.deep.equal([
      server,
      producer,
      consumer,
      client,
    ]);
    expect([request, publish, process].map(({ parentSpanId }) => parentSpanId)).to.deep.equal([
      clientSpan,
      request.spanId,
      publish.spanId,
    ]);
    expect([request.service, process.service]).to.deep.equal(["switchyard-api", "switchyard-worker"]);
    expect(request.attributes).to.include({ "http.route": "/agents/:id/run", "http.response.status_code": 200 });
    expect(call?.attributes).to.include({ "gen_ai.provider.name": "openai", "gen_ai.request.model": model });
    expect(String(process.attributes["messaging.message.id"])).to.match(/^job_/);
    const line = log.split("\n").find((text) => text.includes("/run") && text.includes('"status":200'));
    expect(JSON.parse(line ?? "{}")).to.include({ traceId });
    expect(collector.text()).to.contain('"x-collector-key":"abc def"');
    expect(collector.text()).not.to.match(/walrus|lighthouse|keep the desk|sk-of-the-platform|sk_/);
  }).timeout(30_000);

  it("report which part failed, by its code", async () => {
    upstream.play(() => ({ status: 500 }));
    const known = collector.spans.length;
    await withProcesses({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }, async (url) => {
      const caller = makeClient({ url, key: platform.keys.owner });
      const body = { model, messages: [{ role: "user", content: "Hello" }] };
      expect((await caller.post("/ai/chat", body)).status).to.equal(502);
      const stream = await caller.events("POST", "/ai/chat", { body: { ...body, model: "meta-llm", stream: true } });
      await Array.fromAsync(stream.events);
      expect((await caller.get("/jobs/job_01M7XR2W2C3EJZ25XEJQCM9JX4")).status).to.equal(404);
    });
    const spans = collector.spans.slice(known);
    const failures = spans.filter((span) => span.isError).map((span) => [span.name, span.attributes["error.type"]]);
    expect(failures).to.deep.include.members([
      ["POST /ai/chat", "provider_failed"],
      [`chat ${model}`, "provider_failed"],
    ]);
    const [streamed] = spans.filter((span) => span.attributes["gen_ai.request.stream"] === true);
    const parent = spans.find((span) => span.spanId === streamed?.parentSpanId);
    expect([streamed?.isError, parent?.name]).to.deep.equal([false, "POST /ai/chat"]);
    const missing = spans.find((span) => span.name === "GET /jobs/:id");
    expect(missing?.isError, "a caller's mistake is no failure").to.equal(false);
  }).timeout(30_000);

  it("are off without a collector: nothing is recorded", async () => {
    const caller = makeClient({ url: platform.url, key: platform.keys.owner });
    const headers = { prefer: "respond-async", traceparent: `00-${traceId}-${clientSpan}-01` };
    const job = await caller.post("/rag/ingest", { content: "Untraced." }, { headers });
    const record = await platform.platform.store.jobs.findById(job.string("jobId"));
    expect(record?.status).to.equal("queued");
    expect(record?.trace).to.equal(undefined);
  });

  it("are lost, and nothing else, when the collector is unavailable", async () => {
    upstream.play(() => ({ text: "Here." }));
    const log = await withProcesses({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" }, async (url) => {
      expect((await runAgent(url, "Where are you?")).status).to.equal(200);
    });
    expect(log).to.contain("traces are lost");
  }).timeout(30_000);
});
