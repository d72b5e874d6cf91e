import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

type Log = { logId: string; surface: string; [field: string]: unknown };
const model = "meta-llm";

describe("the record of a model call says what the call was made for", () => {
  let test: TestPlatform;
  let owner: ApiClient;
  before(async () => {
    test = await startPlatform({ env: { STORE_COMPLETION_CONTENT: "true" } });
    owner = makeClient({ url: test.url, key: test.keys.owner });
  });
  after(() => test?.close());

  const logs = async (query: string) => {
    await test.platform.gateway.flush();
    return (await owner.get(`/ai/logs?${query}`)).at("data") as Log[];
  };
  const originsOf = (found: readonly Log[]) =>
    found.map(({ requestId, jobId, runId, agentId, workflowId }) => ({ requestId, jobId, runId, agentId, workflowId }));
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
    }
  });

  it("the job, the run and the agent", async () => {
    const agent = await owner.post("/agents", { name: "Desk", model, systemPrompt: "You answer." });
    const agentId = agent.string("agentId");
    const ran = await owner.post(`/agents/${agentId}/run`, { input: "Who holds the walrus?" });
    const runId = ran.string("runId");
    const found = await logs(`runId=${runId}`);
    expect(originsOf(found)).to.deep.equal([{ ...none, jobId: found[0]?.jobId, runId, agentId }]);
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
    expect(originsOf(found)).to.deep.equal(found.map(() => ({ ...none, jobId, runId, workflowId })));
  });

  it("the job of a document", async () => {
    const headers = { prefer: "respond-async" };
    const accepted = await owner.post("/rag/ingest", { content: "The otter sold the walrus." }, { headers });
    const jobId = accepted.string("jobId");
    await pollUntil(async () => (await owner.get(`/jobs/${jobId}`)).at("status") === "completed");
    const found = await logs(`jobId=${jobId}`);
    expect(originsOf(found)).to.deep.equal([{ ...none, jobId }]);
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
