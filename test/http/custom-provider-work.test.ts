import { expect } from "chai";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const MODEL = "lab/small";
const price = { contextWindow: 32_000, inputUsdPerMTok: 3, outputUsdPerMTok: 5 };

describe("work that names a custom provider's model", () => {
  let upstream: FakeProvider;
  let test: TestPlatform;
  let admin: ApiClient;
  before(async function () {
    this.timeout(60_000);
    upstream = await startFakeProvider();
    test = await startPlatform({ env: { FETCH_ALLOW_ORIGINS: upstream.origin, BATCH_POLL_MS: "50" } });
    admin = makeClient({ url: test.url, key: test.keys.admin });
    const models = [{ id: "small", type: "chat", ...price }];
    const body = { baseUrl: upstream.url, key: "sk-custom-work-0123456789abcdef", wire: "openai-chat", models };
    expect((await admin.request("PUT", "/ai/providers/custom/lab", { body })).status).to.equal(200);
  });
  beforeEach(() => upstream.reset());
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const askedModels = () => new Set(upstream.requests.map(({ body }) => body.model));

  it("runs agents by it, within what they may cost", async () => {
    const agent = await admin.post("/agents", { name: "Desk", model: MODEL, systemPrompt: "You answer." });
    const run = (limits: object) =>
      admin.post(`/agents/${agent.string("agentId")}/run`, { input: "What does a lease protect?", ...limits });
    const ended = await run({});
    expect(ended.at("output"), ended.text).to.equal("The lease protects a job.");
    expect(askedModels()).to.deep.equal(new Set(["small"]));
    upstream.reset();
    await run({ budget: { maxCostUsd: 0.000_001 } });
    expect(upstream.requests, "not even the prompt is paid for").to.deep.equal([]);
  });

  it("runs workflows and composite patterns by it", async () => {
    const steps = [{ type: "ai_completion", model: MODEL, prompt: "What does a lease protect?" }];
    const workflow = await admin.post("/workflows", { name: "Desk", steps });
    const path = `/workflows/${workflow.string("workflowId")}`;
    const run = await admin.post(`${path}/execute`, { input: {} });
    const ended = await pollUntil(async () => {
      const now = await admin.get(`${path}/runs/${run.string("runId")}`);
      return ["completed", "failed"].includes(now.string("status")) ? now : undefined;
    });
    expect(ended.text).to.contain("The lease protects a job.");
    const body = { pattern: "critique", profile: "content", input: "What does a lease protect?", models: [MODEL] };
    const composite = await admin.post("/composite/execute", body);
    expect(composite.status, composite.text).to.equal(200);
    expect(askedModels()).to.deep.equal(new Set(["small"]));
  });

  it("refuses lines of a batch's file, and says why", async () => {
    const line = { model: MODEL, messages: [{ role: "user", content: "What does a lease protect?" }] };
    const lines = JSON.stringify({ custom_id: "one", method: "POST", url: "/v1/chat/completions", body: line });
    const form = new FormData();
    form.set("purpose", "batch");
    form.set("file", new Blob([lines]), "requests.jsonl");
    const file = await admin.request("POST", "/v1/files", { raw: form });
    const wanted = { input_file_id: file.string("id"), endpoint: "/v1/chat/completions", completion_window: "24h" };
    const batch = await admin.post("/v1/batches", wanted);
    const ended = await pollUntil(async () => {
      const now = await admin.get(`/v1/batches/${batch.string("id")}`);
      return now.at("status") === "completed" ? now : undefined;
    });
    const errors = await fetch(`${test.url}/v1/files/${ended.string("error_file_id")}/content`, {
      headers: { authorization: `Bearer ${test.keys.admin}` },
    });
    expect(await errors.text()).to.contain("no-batch-interface");
    expect(upstream.requests).to.deep.equal([]);
  });

  it("serves widget keys that are bound to it", async () => {
    const made = await admin.post("/ai/widget/key", { models: [MODEL] });
    const visitor = makeClient({ url: test.url, key: made.string("key") });
    const question = { messages: [{ role: "user", content: "What does a lease protect?" }] };
    const answered = await visitor.post("/ai/chat", { ...question, model: MODEL });
    expect(answered.at("text"), answered.text).to.equal("The lease protects a job.");
  });
});
