import { expect } from "chai";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { readToolResult, toolCall } from "../support/mcp-call.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

type Log = { logId: string; surface: string; [field: string]: unknown };
const model = "meta-llm";

describe("the record of a model call says what the call was made for", () => {
  let test: TestPlatform;
  let owner: ApiClient;
  before(async () => {
    test = await startPlatform({
      env: { STORE_COMPLETION_CONTENT: "true", BATCH_COLLECT_MS: "150", BATCH_POLL_MS: "100" },
    });
    owner = makeClient({ url: test.url, key: test.keys.owner });
  });
  after(() => test?.close());

  const logs = async (query: string) => {
    await test.platform.gateway.flush();
    return (await owner.get(`/ai/logs?${query}`)).at("data") as Log[];
  };
  const originsOf = (found: readonly Log[]) =>
    found.map(({ requestId, jobId, runId, agentId, workflowId }) => ({ requestId, jobId, runId, agentId, workflowId }));
  const idOf = (answer: ApiResponse) => answer.headers.get("x-request-id") ?? expect.fail("the answer has no id");
  const none = { requestId: undefined, jobId: undefined, runId: undefined, agentId: undefined, workflowId: undefined };

  it("the request that it answers, on every surface", async () => {
    await owner.post("/rag/ingest", { content: "The otter holds the walrus." });
    const messages = [{ role: "user", content: "Who holds the walrus?" }];
    const bodies = {
      "/ai/chat": { model, messages },
      "/v1/chat/completions": { model, messages },
      "/v1/messages": { model, messages, max_tokens: 50 },
      "/v1/responses": { model, input: "Who holds the walrus?" },
      "/ai/embeddings": { input: "walrus" },
      "/rag/query": { query: "walrus", mode: "vector" },
    };
    for (const [n, [path, body]] of Object.entries(bodies).entries()) {
      const requestId = `my-request-${n}`;
      const answered = await owner.post(path, body, { headers: { "x-request-id": requestId } });
      expect(answered.status, path).to.equal(200);
      const found = await logs(`requestId=${requestId}`);
      expect(originsOf(found), path).to.deep.equal([{ ...none, requestId }]);
      if (!("model" in body)) continue;
      const headers = { "x-request-id": `${requestId}-streamed` };
      const { events } = await owner.events("POST", path, { body: { ...body, stream: true }, headers });
      for await (const _event of events);
      const streamed = await logs(`requestId=${requestId}-streamed`);
      expect(originsOf(streamed), path).to.deep.equal([{ ...none, requestId: `${requestId}-streamed` }]);
    }
  });

  it("the request that called a tool, which made it at once or by a job", async () => {
    const messages = [{ role: "user", content: "Who holds the walrus?" }];
    const agent = await owner.post("/agents", { name: "Clerk", model, systemPrompt: "You answer." });
    const calls: Record<string, [string, object]> = {
      "my-chat-tool": ["svc_chat", { model, messages }],
      "my-query-tool": ["svc_rag_query", { query: "a walrus of the otter", mode: "vector" }],
      "my-agent-tool": ["svc_agent_run", { agentId: agent.string("agentId"), input: "Who holds the walrus?" }],
    };
    for (const [requestId, [name, given]] of Object.entries(calls)) {
      const called = await owner.post("/mcp", toolCall(1, name, given), {
        headers: { "x-request-id": requestId },
      });
      expect(readToolResult(called).isError, requestId).to.equal(false);
      const found = await logs(`requestId=${requestId}`);
      expect([found.length, found[0]?.requestId], requestId).to.deep.equal([1, requestId]);
    }
  });

  it("the request that submitted its batch, or itself to wait for one", async () => {
    const headers = { "x-request-id": "my-waiting-chat" };
    const messages = [{ role: "user", content: "Who waits for the walrus?" }];
    const waiting = await owner.post("/ai/chat", { model, messages, prefer_async: true }, { headers });
    const params = { model, messages, max_tokens: 50 };
    const requests = ["a", "b"].map((custom_id) => ({ custom_id, params }));
    await owner.post("/v1/messages/batches", { requests }, { headers: { "x-request-id": "my-messages" } });
    const form = new FormData();
    form.set("purpose", "batch");
    const line = {
      custom_id: "a",
      method: "POST",
      url: "/v1/embeddings",
      body: { model: "switchyard-offline-embedding", input: "Who?" },
    };
    form.set("file", new Blob([JSON.stringify(line)]), "lines.jsonl");
    const input_file_id = (await owner.post("/v1/files", undefined, { raw: form })).string("id");
    const batch = { input_file_id, endpoint: "/v1/embeddings", completion_window: "24h" };
    await owner.post("/v1/batches", batch, { headers: { "x-request-id": "my-lines" } });
    for (const [requestId, calls] of [
      ["my-waiting-chat", 1],
      ["my-messages", 2],
      ["my-lines", 1],
    ] as const) {
      const found = await pollUntil(
        async () => {
          const seen = await logs(`requestId=${requestId}`);
          return seen.length >= calls ? seen : null;
        },
        { timeoutMs: 10_000, what: `the calls of ${requestId}` },
      );
      expect(found.length, requestId).to.equal(calls);
      for (const { jobId } of found) expect((await owner.get(`/jobs/${jobId}`)).at("requestId")).to.equal(requestId);
    }
    expect((await owner.get(waiting.string("statusUrl"))).at("requestId")).to.equal("my-waiting-chat");
  });

  it("the job, the run and the agent", async () => {
    const agent = await owner.post("/agents", { name: "Desk", model, systemPrompt: "You answer." });
    const agentId = agent.string("agentId");
    const ran = await owner.post(`/agents/${agentId}/run`, { input: "Who holds the walrus?" });
    const runId = ran.string("runId");
    const found = await logs(`runId=${runId}`);
    expect(originsOf(found)).to.deep.equal([{ ...none, requestId: idOf(ran), jobId: found[0]?.jobId, runId, agentId }]);
    const ofJob = await logs(`jobId=${found[0]?.jobId}`);
    expect(ofJob.map(({ logId }) => logId)).to.deep.equal(found.map(({ logId }) => logId));
    expect((await owner.get(`/jobs/${found[0]?.jobId}`)).at("result.runId")).to.equal(runId);
    const one = await owner.get(`/ai/logs/${found[0]?.logId}`);
    expect([one.at("runId"), one.at("agentId")]).to.deep.equal([runId, agentId]);
  });

  it("the job, the run and the workflow, also of a search in it", async () => {
    const workflow = await owner.post("/workflows", {
      name: "W",
      steps: [
        { type: "ai_completion", id: "a", model, prompt: "Who holds the walrus?" },
        { type: "rag_query", id: "b", query: "otter" },
      ],
    });
    const workflowId = workflow.string("workflowId");
    const ran = await owner.post(`/workflows/${workflowId}/execute`, { input: {} }, { headers: { prefer: "wait=20" } });
    const runId = ran.string("runId");
    const found = await logs(`runId=${runId}`);
    const [{ jobId } = expect.fail("there is none")] = found;
    expect(jobId).to.match(/^job_/);
    expect(found.map(({ surface }) => surface)).to.deep.equal(["rag", "workflows"]);
    expect(originsOf(found)).to.deep.equal(
      found.map(() => ({ requestId: idOf(ran), jobId, runId, agentId: undefined, workflowId })),
    );
  });

  it("the job of a document", async () => {
    const headers = { prefer: "respond-async" };
    const accepted = await owner.post("/rag/ingest", { content: "The otter sold the walrus." }, { headers });
    const jobId = accepted.string("jobId");
    await pollUntil(async () => (await owner.get(`/jobs/${jobId}`)).at("status") === "completed");
    const found = await logs(`jobId=${jobId}`);
    expect(originsOf(found)).to.deep.equal([{ ...none, requestId: idOf(accepted), jobId }]);
  });

  it("the run of a pattern, and of a regulated one no text, which the run has erased", async () => {
    for (const [profile, hasText] of [
      ["coding", true],
      ["healthcare", false],
    ] as const) {
      const ran = await owner.post("/composite/execute", {
        pattern: "critique",
        profile,
        input: "Who holds the walrus?",
      });
      const runId = ran.string("executionId");
      const found = await logs(`runId=${runId}`);
      expect(found.length, profile).to.be.above(0);
      const { logId, jobId } = found[0] ?? expect.fail("there is none");
      expect(jobId).to.match(/^job_/);
      expect((await owner.get(`/ai/logs/${logId}`)).at("content") !== undefined, profile).to.equal(hasText);
    }
  });

  it("to nobody else: another tenant finds none by these ids", async () => {
    const stranger = makeClient({ url: test.url, key: test.keys.stranger });
    const [newest] = await logs("limit=1");
    const answered = await stranger.get(`/ai/logs?runId=${newest?.runId}`);
    expect(answered.at("data")).to.deep.equal([]);
    expect((await owner.get("/ai/logs?runID=x")).status).to.equal(400);
  });
});
