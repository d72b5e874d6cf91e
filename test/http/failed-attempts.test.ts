import { expect } from "chai";
import {
  chatModel,
  condition,
  openWorkflowHarness,
  stepsOf,
  type WorkflowHarness,
} from "../support/workflow-harness.ts";

const usage = { prompt_tokens: 1_000, completion_tokens: 1_000 };
const about = { name: "Helper", model: chatModel, systemPrompt: "Help.", maxTokens: 1_000 };

describe("what a workflow's run has cost", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  let one = 0;
  let agentId = "";
  /** How many runs of the agent fail at their second call, after the first was paid. */
  let failing = 0;
  before(async () => {
    harness = await openWorkflowHarness();
    harness.model.play(({ turn, input }) => {
      if (input === "paid") return { text: "Yes.", usage };
      if (input === "cut") return { text: "Yes, but", usage, finish: "length" };
      if (turn === 1) return { calls: [{ name: "wait", arguments: { ms: 1 } }], usage };
      failing -= 1;
      return failing >= 0 ? { status: 400 } : { text: "Done.", usage };
    });
    agentId = (await harness.member.post("/agents", { ...about, tools: [{ type: "wait" }] })).string("agentId");
    one = Number((await harness.run([ask("paid")])).at("costUsd"));
    expect(one).to.be.above(0);
  });
  after(() => harness.close());

  const ask = (prompt: string) => ({ type: "ai_completion", id: "ask", model: chatModel, prompt, maxTokens: 1_000 });
  const helper = (attempts: number) => ({
    ...{ type: "agent", id: "help", agentId, input: "Help me." },
    retry: { attempts, backoffMs: 10 },
  });
  /** A run that has ended, and its cost in calls. */
  const callsOf = async (steps: object[], input?: unknown) => {
    const run = await harness.run(steps, input);
    return { run, calls: Number(run.at("costUsd")) / one };
  };

  it("has that of an attempt that failed before another one did not", async () => {
    failing = 1;
    const { run, calls } = await callsOf([helper(2)]);
    expect([run.at("status"), stepsOf(run)[0]?.attempts], run.text).to.deep.equal(["completed", 2]);
    expect(calls).to.be.closeTo(3, 1e-6);
  });

  it("has that of all attempts when the last one failed, too", async () => {
    failing = 2;
    const { run, calls } = await callsOf([helper(2)]);
    expect(run.at("status"), run.text).to.equal("failed");
    expect(calls).to.be.closeTo(2, 1e-6);
  });

  it("has that of an answer that was cut, which fails its step", async () => {
    const { run, calls } = await callsOf([ask("cut")]);
    expect(run.at("error.code"), run.text).to.equal("answer_incomplete");
    expect(calls).to.be.closeTo(1, 1e-6);
  });

  it("has that of the items of a list, of which one has failed", async () => {
    failing = 1;
    const steps = [{ ...ask("paid"), id: "own" }, condition("item == 'last'", [helper(1)])];
    const list = { type: "for_each", id: "each", items: "input", concurrency: 1, do: steps };
    const { run, calls } = await callsOf([ask("paid"), list], ["paid", "paid", "last"]);
    expect(run.at("status"), run.text).to.equal("failed");
    expect(calls).to.be.closeTo(1 + 3 + 1, 1e-6);
  });
});
