import { expect } from "chai";
import { type AgentHarness, openAgentHarness } from "../support/agent-harness.ts";
import type { AgentAnswer } from "../support/agent-upstream.ts";

const manual =
  "# P-100\n\n## Bleeding\n\nBleed the pump before each heating season. Open the valve until no air comes.";
const contact = "# Contact\n\nWrite to service@example.org when the pump is loud.";

describe("citations of an agent that searches documents", () => {
  let harness: AgentHarness;
  let documentId: string;
  before(async () => {
    harness = await openAgentHarness();
    const { member } = harness;
    documentId = (await member.post("/rag/ingest", { title: "Pump manual", content: manual })).string("documentId");
    await member.post("/rag/ingest", { title: "Contact", content: contact });
  });
  after(() => harness?.close());

  const search = (query: string): AgentAnswer => ({ calls: [{ name: "rag_query", arguments: { query } }] });
  /** Runs an agent whose model gives these answers, one after the other. */
  const run = async (answers: AgentAnswer[], tools: object[] = [{ type: "rag_query" }]) => {
    const { member, upstream, model } = harness;
    upstream.play(({ turn }) => answers[turn - 1] ?? { text: "Done." });
    const made = await member.post("/agents", { name: "Clerk", model, systemPrompt: "You look things up.", tools });
    const agentId = made.string("agentId");
    const result = await member.post(`/agents/${agentId}/run`, { input: "Look it up." });
    expect(result.status, result.text).to.equal(200);
    const log = await member.get(`/agents/${agentId}/runs/${result.string("runId")}`);
    expect(log.at("integrity.verified")).to.equal(true);
    return { result, log };
  };
  const answer = { text: "The pump must be bled before each heating season starts." };

  it("name in the run's result what its answer rests on, and in its audit log all that it has found", async () => {
    const { result, log } = await run([search("When is the pump bled?"), answer]);
    const place = { documentId, title: "Pump manual", heading: "P-100" };
    const quote = "Bleed the pump before each heating season.";
    expect(result.at("citations")).to.have.lengthOf(1);
    expect(result.at("citations[0]")).to.deep.include({ ...place, quote });
    expect(log.at("citations")).to.deep.equal(result.at("citations"));
    const found = log.at("steps[0].citations") as Record<string, unknown>[];
    expect(found.length).to.be.greaterThan(1);
    expect(found.find(({ heading }) => heading === place.heading)).to.deep.include({ ...place, quote });
    expect(found[0]).to.not.have.any.keys("at", "length");
    const job = await harness.member.get(`/jobs/${log.string("jobId")}`);
    expect(job.at("result.citations")).to.deep.equal(result.at("citations"));
  });

  it("are each named once over several searches, also of one answer, and none that the answer does not use", async () => {
    const both = { calls: [...(search("pump bled").calls ?? []), ...(search("valve air").calls ?? [])] };
    const { result, log } = await run([both, search("bleeding"), answer]);
    expect(result.at("citations")).to.have.lengthOf(1);
    expect(log.at("steps[0].actions[1].citations")).to.be.an("array");
    const unrelated = await run([search("pump bled"), { text: "Queen Victoria opened Parliament." }]);
    expect(unrelated.result.at("citations")).to.deep.equal([]);
  });

  it("are absent where nothing was searched, and empty where nothing was found", async () => {
    const { result, log } = await run([answer], []);
    expect(result.body).to.not.have.property("citations");
    expect(log.body).to.not.have.property("citations");
    const tools = [{ type: "rag_query", config: { collection: "default" } }];
    const { stranger, upstream, model } = harness;
    upstream.play(({ turn }) => (turn === 1 ? search("pump") : answer));
    const agentId = (await stranger.post("/agents", { name: "A", model, systemPrompt: "B.", tools })).string("agentId");
    const none = await stranger.post(`/agents/${agentId}/run`, { input: "Look." });
    expect(none.at("citations"), none.text).to.deep.equal([]);
  });

  it("quote nothing that guards have masked in what the model got", async () => {
    const set = (rules: object) => harness.admin.request("PUT", "/guards", { body: { rules } });
    expect((await set({ email_address: { toolOutput: "mask" } })).status).to.equal(200);
    try {
      const { result, log } = await run([search("loud pump: write to the service"), { text: "Write to service." }]);
      expect(result.text + log.text).to.not.contain("service@example.org");
      const found = log.at("steps[0].citations") as { heading: string; quote?: string }[];
      expect(found.map(({ heading }) => heading)).to.include("Contact");
    } finally {
      await set({});
    }
  });
});
