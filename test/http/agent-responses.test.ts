import { expect } from "chai";
import { type AgentHarness, openAgentHarness } from "../support/agent-harness.ts";
import { valueAt } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";

const body = { model: "agent:Adder", input: "What is 4 + 2?", background: true };

describe("responses of agents in the background", function () {
  this.timeout(30_000);
  let harness: AgentHarness;
  let agentId: string;
  before(async () => {
    harness = await openAgentHarness();
    const about = { name: "Adder", model: harness.model, systemPrompt: "You add.", tools: [{ type: "calculator" }] };
    agentId = (await harness.member.post("/agents", about)).string("agentId");
  });
  after(() => harness.close());

  const add = () =>
    harness.upstream.play(({ turn }) =>
      turn === 1
        ? { text: "I add.", calls: [{ name: "calculator", arguments: { expression: "4 + 2" } }] }
        : { text: "It is 6." },
    );
  const runs = async () => (await harness.member.get(`/agents/${agentId}/runs`)).at("data") as { status: string }[];
  const ended = (id: string) =>
    pollUntil(async () => {
      const response = await harness.member.get(`/v1/responses/${id}`);
      return ["queued", "in_progress"].includes(response.string("status")) ? undefined : response;
    });

  it("are one run each, whose steps are their items", async () => {
    add();
    const accepted = await harness.member.post("/v1/responses", body);
    expect([accepted.status, accepted.at("status")], accepted.text).to.deep.equal([200, "queued"]);
    const response = await ended(accepted.string("id"));
    expect(response.at("status")).to.equal("completed");
    expect(response.at("output[1]")).to.include({ type: "mcp_call", name: "calculator", output: "6" });
    expect(response.at("output[2].content[0].text")).to.equal("It is 6.");
    const run = await harness.member.get(`/runs/${response.string("logId")}/trail`);
    expect(run.body).to.include({ agentId, status: "completed" });
    expect(await runs()).to.have.length(1);
  });

  it("stream the steps, from any number on", async () => {
    add();
    const { events } = await harness.member.events("POST", "/v1/responses", { body: { ...body, stream: true } });
    const all = (await Array.fromAsync(events)).map(({ data }) => data);
    const typeOf = (event: unknown) => valueAt(event, "type");
    expect(all.map(typeOf)).to.include.members(["response.mcp_call.completed", "response.completed"]);
    const id = valueAt(all[0], "response.id");
    const from = all.findIndex((event) => typeOf(event) === "response.mcp_call.in_progress");
    const path = `/v1/responses/${id}?stream=true&starting_after=${valueAt(all[from], "sequence_number")}`;
    const { events: later } = await harness.member.events("GET", path);
    expect((await Array.fromAsync(later)).map(({ data }) => data)).to.deep.equal(all.slice(from + 1));
  });

  for (const stream of [false, true]) {
    it(`cancel their run when they are cancelled${stream ? ", while they are streamed" : ""}`, async () => {
      const asked = Promise.withResolvers<void>();
      const opened = Promise.withResolvers<void>();
      harness.upstream.play(async () => {
        asked.resolve();
        await opened.promise;
        return { text: "Too late." };
      });
      const accepted = stream
        ? await harness.member.events("POST", "/v1/responses", { body: { ...body, stream } })
        : await harness.member.post("/v1/responses", body);
      const first = "events" in accepted ? (await accepted.events.next()).value : undefined;
      const id = "events" in accepted ? valueAt(first?.data, "response.id") : accepted.at("id");
      await asked.promise;
      const cancelled = await harness.member.post(`/v1/responses/${id}/cancel`, {});
      expect([cancelled.status, cancelled.at("status")], cancelled.text).to.deep.equal([200, "cancelled"]);
      await pollUntil(async () => (await runs())[0]?.status === "cancelled");
      opened.resolve();
    });
  }

  it("are refused before they are recorded, as without a background", async () => {
    const config = { pattern: "critique", profile: "healthcare" };
    const tools = [{ type: "composite", config }];
    await harness.member.post("/agents", { name: "Nurse", model: harness.model, systemPrompt: "You nurse.", tools });
    const before = (await harness.member.get("/jobs")).at("data");
    const refusals: [object, number, string, string][] = [
      [{ model: "agent:Nurse", input: "My SSN is 219-47-8831." }, 422, "compliance_blocked", "input[0].content"],
      [{ model: "agent:Nobody" }, 404, "model_not_found", "model"],
      [{ model: "composite:critique:healthcare" }, 400, "invalid_request", "background"],
    ];
    for (const [fields, ...refusal] of refusals) {
      const answer = await harness.member.post("/v1/responses", { ...body, ...fields });
      expect([answer.status, answer.at("error.code"), answer.at("error.param")], answer.text).to.deep.equal(refusal);
    }
    expect((await harness.member.get("/jobs")).at("data")).to.deep.equal(before);
  });
});
