import { expect } from "chai";
import { askSurface, eachForm } from "../support/four-surfaces.ts";
import { chatModel, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

describe("an answer that is not whole", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness();
  });
  after(() => harness.close());

  const makeAgent = async (name: string, tools: object[] = []) => {
    const made = await harness.member.post("/agents", {
      name,
      model: chatModel,
      systemPrompt: "You keep the desk.",
      tools,
    });
    return made.string("agentId");
  };

  for (const [finish, reason] of [
    ["length", "length"],
    ["MODEL_LENGTH", "length"],
    ["SAFETY", "content_filter"],
    ["brand_new", "length"],
  ] as const) {
    it(`stops the run of an agent when it ends with ${finish}, on every surface that the agent stands for a model`, async () => {
      const { member, model } = harness;
      model.play(() => ({ text: "half an ans", finish }));
      const agentId = await makeAgent(`Clerk ${finish}`);
      const ran = await member.post(`/agents/${agentId}/run`, { input: "Go." });
      expect([ran.status, ran.at("status"), ran.at("stopReason"), ran.at("output")], ran.text).to.deep.equal([
        200,
        "stopped",
        reason,
        "half an ans",
      ]);
      const read = await member.get(`/agents/${agentId}/runs/${ran.string("runId")}`);
      expect([read.at("status"), read.at("stopReason"), read.at("integrity.verified")]).to.deep.equal([
        "stopped",
        reason,
        true,
      ]);
      for (const { surface, isStream } of eachForm()) {
        const said = await askSurface(member, surface, isStream, { model: `agent:${agentId}` });
        expect([said.finish, said.text], `${surface.name} ${isStream}`).to.deep.equal([reason, "half an ans"]);
      }
    });
  }

  it("does not make a tool call of an agent that was cut before its arguments", async () => {
    const { member, model } = harness;
    model.play(({ turn }) =>
      turn === 1 ? { calls: [{ name: "current_time", arguments: "" }], finish: "length" } : { text: "Done." },
    );
    const agentId = await makeAgent("Watch", [{ type: "current_time" }]);
    const ran = await member.post(`/agents/${agentId}/run`, { input: "Go." });
    const read = await member.get(`/agents/${agentId}/runs/${ran.string("runId")}`);
    expect([read.at("status"), read.at("steps[0].isError")], read.text).to.deep.equal(["completed", true]);
  });

  const step = (more: object = {}) => ({
    id: "ask",
    type: "ai_completion",
    model: chatModel,
    prompt: "Go",
    retry: { attempts: 1, backoffMs: 0 },
    ...more,
  });
  const next = {
    id: "then",
    type: "ai_completion",
    model: chatModel,
    prompt: "{{ steps.ask.finishReason }}: {{ steps.ask.output }}",
  };

  for (const [finish, reason] of [
    ["length", "length"],
    ["content_filter", "content_filter"],
    ["brand_new", "length"],
  ] as const) {
    it(`fails a step that ends with ${finish}, unless it says that it takes that`, async () => {
      const { model, run } = harness;
      model.play(() => ({ text: "half an ans", finish }));
      const failed = await run([step(), next]);
      expect(
        [failed.at("status"), failed.at("steps[0].error.code"), failed.at("steps[0].finishReason")],
        failed.text,
      ).to.deep.equal(["failed", "answer_incomplete", reason]);
      expect(failed.at("steps[0].error.details")).to.include({ finishReason: reason, text: "half an ans" });
      expect([failed.at("error.code"), failed.at("tokensUsed"), model.calls.length]).to.deep.equal([
        "answer_incomplete",
        15,
        1,
      ]);
      model.play(({ turn, input }) => (input === "Go" ? { text: "half", finish } : { text: `${turn} ${input}` }));
      const taken = await run([step({ allowIncomplete: true }), next]);
      expect([taken.at("status"), taken.at("output")], taken.text).to.deep.equal(["completed", `1 ${reason}: half`]);
    });
  }

  it("is told to a caller who waits for the run", async () => {
    harness.model.play(() => ({ text: "half", finish: "length" }));
    const workflowId = await harness.create([step()]);
    const headers = { prefer: "wait=10" };
    const ran = await harness.member.post(`/workflows/${workflowId}/execute`, {}, { headers });
    expect([ran.status, ran.at("error.code"), ran.at("error.details.finishReason")], ran.text).to.deep.equal([
      502,
      "answer_incomplete",
      "length",
    ]);
  });

  it("fails a step whose provider breaks off in the middle, unless it says that it takes that", async () => {
    const { model, run } = harness;
    model.play(() => ({ text: "half an ans", finish: "error" }));
    const failed = await run([step(), next]);
    expect([failed.at("status"), failed.at("steps[0].error.code")], failed.text).to.deep.equal([
      "failed",
      "provider_failed",
    ]);
    model.play(({ input }) => (input === "Go" ? { text: "half", finish: "error" } : { text: input }));
    const taken = await run([step({ allowIncomplete: true }), next]);
    expect([taken.at("status"), taken.at("output"), taken.at("steps[0].finishReason")], taken.text).to.deep.equal([
      "completed",
      "error: half",
      "error",
    ]);
    expect(taken.at("steps[0].tokensUsed")).to.equal(15);
  });

  it("shows how a whole answer ended to expressions, too", async () => {
    harness.model.play(({ input }) => ({ text: input }));
    const ran = await harness.run([step(), next]);
    expect([ran.at("status"), ran.at("output")], ran.text).to.deep.equal(["completed", "stop: Go"]);
  });
});
