import { expect } from "chai";
import { type AgentDesk, openAgentDesk } from "../support/agent-harness.ts";
import type { AgentUpstream } from "../support/agent-upstream.ts";
import type { ApiClient } from "../support/http-client.ts";

describe("chats with an agent in the place of a model", function () {
  this.timeout(30_000);
  let desk: AgentDesk;
  let upstream: AgentUpstream;
  let member: ApiClient;
  let agentId: string;
  before(async () => {
    desk = await openAgentDesk();
    ({ upstream, member } = desk);
    const made = await member.post("/agents", {
      name: "Adder",
      model: desk.model,
      systemPrompt: "You add.",
      tools: [{ type: "calculator" }],
    });
    agentId = made.string("agentId");
  });
  after(() => desk.close());

  const add = () =>
    upstream.play(({ turn }) =>
      turn === 1
        ? { text: "I add.", calls: [{ name: "calculator", arguments: { expression: "4 + 2" } }] }
        : { text: "It is 6." },
    );
  const messages = [{ role: "user", content: "What is 4 + 2?" }];

  it("give the answer of a durable run, with its steps as reasoning and what it cost", async () => {
    add();
    const answer = await member.post("/v1/chat/completions", { model: "agent:Adder", messages });
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.at("choices[0].message.content")).to.equal("It is 6.");
    expect(answer.at("choices[0].message.reasoning_content")).to.equal('I add.\n[calculator] {"expression":"4 + 2"}\n');
    expect(answer.at("choices[0].finish_reason")).to.equal("stop");
    expect(answer.at("usage")).to.deep.equal({ prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 });
    const run = await member.get(`/runs/${answer.string("logId")}/trail`);
    expect(run.body).to.include({ agentId, input: "What is 4 + 2?", status: "completed", finalOutput: "It is 6." });
    expect(run.at("costUsd")).to.equal(answer.at("costUsd"));
    expect(run.at("integrity.verified")).to.equal(true);
    const job = await member.get(`/jobs/${run.string("jobId")}`);
    expect(job.body).to.include({ kind: "agent", status: "completed" });
  });

  it("give the model what was said before, and keep it in the run", async () => {
    upstream.play(() => ({ text: "As before." }));
    const earlier = [
      { role: "system", content: "Be brief." },
      { role: "user", content: "What is 1 + 1?" },
      { role: "assistant", content: "2" },
    ];
    const answer = await member.post("/v1/chat/completions", {
      model: `agent:${agentId}`,
      messages: [...earlier, { role: "user", content: "And again?" }],
    });
    expect(answer.status, answer.text).to.equal(200);
    const said = upstream.calls[0]?.messages.slice(1).map(({ role, content }) => ({ role, content }));
    expect(said).to.deep.equal([...earlier, { role: "user", content: "And again?" }]);
    const run = await member.get(`/runs/${answer.string("logId")}/trail`);
    expect(run.at("history")).to.deep.equal(earlier);
    expect(run.at("integrity.verified")).to.equal(true);
  });

  it("have each tool call as an item of a response", async () => {
    add();
    const response = await member.post("/v1/responses", {
      model: "agent:Adder",
      input: "What is 4 + 2?",
      store: false,
    });
    expect(response.status, response.text).to.equal(200);
    expect(response.at("output")).to.have.length(3);
    expect(response.at("output[0].summary[0].text")).to.equal("I add.\n");
    expect(response.at("output[1]")).to.include({
      type: "mcp_call",
      status: "completed",
      server_label: "Adder",
      name: "calculator",
      arguments: '{"expression":"4 + 2"}',
      output: "6",
      error: null,
    });
    expect(response.at("output[2].content[0].text")).to.equal("It is 6.");
    expect(response.at("usage.total_tokens")).to.equal(30);
  });
});
