import { expect } from "chai";
import { type AgentHarness, openAgentHarness } from "../support/agent-harness.ts";
import type { AgentUpstream } from "../support/agent-upstream.ts";
import type { ApiClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import type { ToolServer } from "../support/tool-server.ts";

describe("runs of agents", function () {
  this.timeout(30_000);
  let harness: AgentHarness;
  let upstream: AgentUpstream;
  let site: ToolServer;
  let member: ApiClient;
  let model: string;
  before(async () => {
    harness = await openAgentHarness();
    ({ upstream, site, member, model } = harness);
  });
  after(() => harness.close());

  const makeAgent = async (fields: object = {}) =>
    (await member.post("/agents", { name: "Desk", model, systemPrompt: "You keep the desk.", ...fields })).string(
      "agentId",
    );
  const auditLogOf = (agentId: string, runId: string) => member.get(`/agents/${agentId}/runs/${runId}`);

  it("answer a question from ingested documents with the offline model, and show the passage that was observed", async () => {
    const passage = "Pump P-100 is bled each spring, before the season begins.";
    await member.post("/rag/ingest", { title: "Pump manual", content: `# Pump P-100\n\n${passage}` });
    const agentId = await makeAgent({ model: "meta-llm", tools: [{ type: "rag_query", config: {} }] });
    const run = await member.post(`/agents/${agentId}/run`, { input: "When is pump P-100 bled?" });
    expect(run.status).to.equal(200);
    expect(run.string("output")).to.contain("each spring");
    expect(run.body).to.include({ steps: 2, status: "completed" });
    const auditLog = await auditLogOf(agentId, run.string("runId"));
    expect(auditLog.at("steps[0].action")).to.equal("rag_query");
    expect(auditLog.at("steps[0].actionInput.query")).to.equal("When is pump P-100 bled?");
    expect(auditLog.string("steps[0].observation")).to.contain(passage);
    expect(auditLog.at("steps[1].action")).to.equal("final_answer");
    expect(auditLog.string("finalOutput")).to.equal(run.string("output"));
    expect(auditLog.at("integrity.verified")).to.equal(true);
    expect(auditLog.at("integrity.head")).to.equal(run.at("auditHead"));
  });

  it("take several steps, each with thought, action, input and observation, in order", async () => {
    site.on("/stock", (_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end('{"left":4}');
    });
    upstream.play(({ turn }) => {
      if (turn === 1)
        return { text: "I look it up.", calls: [{ name: "http_request", arguments: { url: `${site.origin}/stock` } }] };
      if (turn === 2)
        return { text: "I add two.", calls: [{ name: "calculator", arguments: { expression: "4 + 2" } }] };
      return { text: "There will be 6." };
    });
    const agentId = await makeAgent({
      tools: [{ type: "http_request", config: { allowedHosts: [site.host] } }, { type: "calculator" }],
    });
    const accepted = await member.post(
      `/agents/${agentId}/run`,
      { input: "How many will there be?" },
      { headers: { prefer: "respond-async" } },
    );
    expect(accepted.status).to.equal(202);
    expect(accepted.at("runId")).to.match(/^run_/);
    const job = await pollUntil(
      async () => {
        const job = await member.get(`/jobs/${accepted.string("jobId")}`);
        return job.at("status") === "completed" ? job : undefined;
      },
      { what: "the run's end" },
    );
    expect(job.at("kind")).to.equal("agent");
    expect(job.at("result")).to.include({ output: "There will be 6.", steps: 3, tokensUsed: 45 });
    const auditLog = await auditLogOf(agentId, accepted.string("runId"));
    const steps = auditLog.at("steps") as Record<string, unknown>[]; // the schema was checked by the client
    expect(steps.map(({ index, thought, action }) => [index, thought, action])).to.deep.equal([
      [1, "I look it up.", "http_request"],
      [2, "I add two.", "calculator"],
      [3, "There will be 6.", "final_answer"],
    ]);
    expect(steps[0]?.observation).to.contain('{"left":4}');
    expect(steps[1]).to.deep.include({ actionInput: { expression: "4 + 2" }, observation: "6", tokens: 15 });
  });

  it("record the model's reasoning as the thought when it calls a tool without text", async () => {
    upstream.play(({ turn }) =>
      turn === 1
        ? { reasoning: "I should add.", calls: [{ name: "calculator", arguments: { expression: "4 + 2" } }] }
        : { text: "6." },
    );
    const agentId = await makeAgent({ tools: [{ type: "calculator" }] });
    const run = await member.post(`/agents/${agentId}/run`, { input: "Add." });
    const steps = (await auditLogOf(agentId, run.string("runId"))).at("steps") as { thought: string }[];
    expect(steps.map(({ thought }) => thought)).to.deep.equal(["I should add.", "6."]);
  });
});
