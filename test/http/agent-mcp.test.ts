import { expect } from "chai";
import type { ApiClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { chatModel, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

const description = "A tool of another Switchyard.";
const region = { type: "string", "x-mcp-header": "Region" };
const inputSchema = { type: "object", properties: { name: { type: "string" }, region } };
const greet = { type: "ai_completion", id: "greet", model: chatModel, prompt: "Greet {{ input.name }}" };
const sign = { type: "human_approval", id: "sign", assigneeRole: "admin" };

describe("an agent and an MCP server of 2026-07-28", function () {
  this.timeout(60_000);
  let server: WorkflowHarness;
  let harness: WorkflowHarness;
  before(async () => {
    server = await openWorkflowHarness({ env: { TOOL_WAIT_MS: "0" } }); // every run is a task
    await server.create([greet], { inputSchema, publish: { name: "greet", description } });
    await server.create([sign, greet], { publish: { name: "greet_signed", description } });
    harness = await openWorkflowHarness({ env: { FETCH_ALLOW_ORIGINS: server.test.url } });
  });
  after(async () => {
    await harness?.close();
    await server?.close();
  });

  /** Runs an agent whose model calls one tool of the server; the first step. */
  const observe = async (client: ApiClient, tool: string, given: object) => {
    const config = { url: `${server.test.url}/mcp`, headers: { authorization: `Bearer ${server.test.keys.admin}` } };
    harness.model.play(({ turn }) => (turn === 1 ? { calls: [{ name: tool, arguments: given }] } : { text: "Done." }));
    const agent = {
      name: "Desk",
      model: chatModel,
      systemPrompt: "You greet.",
      tools: [{ type: "mcp", name: "other", config }],
    };
    const agentId = (await client.post("/agents", agent)).string("agentId");
    const ran = await client.post(`/agents/${agentId}/run`, { input: "Greet." }, { headers: { prefer: "wait=50" } });
    const run = await client.get(`/agents/${agentId}/runs/${ran.string("runId")}`);
    return { observation: run.string("steps[0].observation"), isError: run.at("steps[0].isError") };
  };

  it("gets the result of the task that the server makes of its call, with the headers that the tool asks for", async () => {
    server.model.play(() => ({ text: "Hello, Ada!" }));
    const { observation, isError } = await observe(harness.member, "other_greet", { name: "Ada", region: "Köln" });
    expect([observation, isError]).to.deep.equal(["Hello, Ada!", undefined]);
  });

  it("reports what the server refuses", async () => {
    const { observation, isError } = await observe(harness.member, "other_greet", { name: 7 });
    expect(isError).to.equal(true);
    expect(observation).to.contain("name");
  });

  it("cancels the task when its own run is cancelled", async () => {
    const running = observe(harness.member, "other_greet_signed", { name: "Ada" }).catch(() => null);
    const remote = await pollUntil(async () =>
      (await server.admin.get("/jobs?kind=workflow&status=awaiting")).at("data[0].jobId"),
    );
    const own = await pollUntil(async () =>
      (await harness.member.get("/jobs?kind=agent&status=running")).at("data[0].jobId"),
    );
    await harness.member.post(`/jobs/${own}/cancel`);
    await pollUntil(async () => (await server.admin.get(`/jobs/${remote}`)).at("status") === "cancelled");
    await running;
  });
});
