import { expect } from "chai";
import { tenantOf } from "../support/tenant-of.ts";
import { chatModel, openWorkflowHarness, stepsOf, type WorkflowHarness } from "../support/workflow-harness.ts";

const usage = { prompt_tokens: 1_000, completion_tokens: 1_000 };
const ask = { type: "ai_completion", id: "ask", model: chatModel, prompt: "{{ item }}", maxTokens: 1_000 };
const items = Array.from({ length: 8 }, (_, n) => `item ${n}`);
const answerTo = (item: string) => `Answer to ${item}`;

describe("a list over items whose budget ends in the middle", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  let agentId = "";
  let inner = "";
  const asked: string[] = [];
  before(async () => {
    harness = await openWorkflowHarness();
    harness.model.play(({ input }) => {
      asked.push(input);
      return { text: answerTo(input), usage };
    });
    const agent = { name: "Helper", model: chatModel, systemPrompt: "Help.", tools: [], maxTokens: 1_000 };
    agentId = (await harness.member.post("/agents", agent)).string("agentId");
    inner = await harness.create([{ ...ask, prompt: "{{ input }}" }]);
  });
  afterEach(() => setBudget(null));
  after(() => harness.close());

  const setBudget = async (usd: number | null) => {
    const { gateway } = harness.test.platform;
    await gateway.flush();
    await gateway.setBudget(await tenantOf(harness.test), usd);
  };
  /** Leaves so much of the tenant's month. */
  const leave = async (usd: number) => {
    await setBudget(1_000);
    await setBudget(1_000 - Number((await harness.owner.get("/usage")).at("budget.leftUsd")) + usd);
  };
  const loopOf = (step: object, concurrency = 1) => [
    { type: "for_each", id: "loop", items: "input", concurrency, onError: "continue", do: [step] },
  ];
  const steps = (): Record<string, object> => ({
    "a model": ask,
    "an agent": { type: "agent", id: "ask", agentId, input: "{{ item }}" },
    "another workflow": { type: "workflow", id: "ask", workflowId: inner, input: "{{ item }}" },
  });

  for (const name of Object.keys(steps())) {
    it(`stops exactly there when it asks ${name}, shows what was done, and goes on from there`, async () => {
      const workflowId = await harness.create(loopOf(steps()[name] ?? {}));
      const first = await harness.reach(workflowId, await harness.start(workflowId, items.slice(0, 1)), "completed");
      await leave(Number(first.at("costUsd")) * 3.5);
      asked.length = 0;
      const runId = await harness.start(workflowId, items);
      const stopped = await harness.reach(workflowId, runId, "completed", "failed");
      expect(stopped.at("error.code"), stopped.text.slice(0, 800)).to.equal("budget_exhausted");
      const done = asked.length;
      expect(done).to.be.within(3, 4);
      expect(stepsOf(stopped)[0]).to.have.deep.property("items", { done, total: items.length, failed: 0 });
      expect(Number(stopped.at("costUsd")), "what was done").to.be.closeTo(Number(first.at("costUsd")) * done, 1e-6);
      const path = `/workflows/${workflowId}/runs/${runId}`;
      const kept = (await harness.member.get(`${path}/items?path=0`)).at("data") as { output: unknown }[];
      expect(kept.map(({ output }) => output)).to.deep.equal(items.slice(0, done).map(answerTo));
      await setBudget(1_000);
      const again = await harness.member.post(`${path}/retry`);
      const run = await harness.reach(workflowId, again.string("runId"), "completed", "failed");
      expect(run.at("output"), run.text.slice(0, 800)).to.deep.equal(items.map(answerTo));
      expect(asked, "each is asked and paid once").to.deep.equal(items);
      expect(Number(run.at("costUsd"))).to.be.closeTo(Number(first.at("costUsd")) * items.length, 1e-6);
    });
  }

  it("asks for no further item when many are under way", async () => {
    const workflowId = await harness.create(loopOf(ask, 4));
    const first = await harness.reach(workflowId, await harness.start(workflowId, items.slice(0, 1)), "completed");
    await leave(Number(first.at("costUsd")) * 2.5);
    asked.length = 0;
    const stopped = await harness.reach(workflowId, await harness.start(workflowId, items), "completed", "failed");
    expect(stopped.at("error.code"), stopped.text.slice(0, 800)).to.equal("budget_exhausted");
    expect(asked.length).to.be.within(2, 3);
  });

  it("goes on when it is the budget of the agent's step, and says so of each item", async () => {
    const step = { type: "agent", id: "ask", agentId, input: "{{ item }}", budget: { maxTokens: 1 } };
    const said = { type: "set", id: "said", values: { how: "{{ steps.ask.finishReason }}" } };
    const workflowId = await harness.create([{ type: "for_each", id: "loop", items: "input", do: [step, said] }]);
    const run = await harness.reach(
      workflowId,
      await harness.start(workflowId, items.slice(0, 2)),
      "completed",
      "failed",
    );
    expect(run.at("output"), run.text.slice(0, 800)).to.deep.equal([{ how: "max_tokens" }, { how: "max_tokens" }]);
  });
});
