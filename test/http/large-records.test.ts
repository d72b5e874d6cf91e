import { expect } from "chai";
import { makeClient } from "../support/http-client.ts";
import { whileOthersWork } from "../support/while-others-work.ts";
import { chatModel, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

/** What the steps of a run say: its record, and each answer with it, is as large. */
const STEPS = 40;
const STEP_CHARACTERS = 10_000;

describe("a large record", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  let path: string;
  let anyPath: string;
  before(async () => {
    harness = await openWorkflowHarness();
    harness.model.play(() => ({ text: "x".repeat(STEP_CHARACTERS) }));
    const step = { type: "ai_completion", model: chatModel, prompt: "Hi" };
    const workflowId = await harness.create(Array.from({ length: STEPS }, () => step));
    const started = await harness.member.post(`/workflows/${workflowId}/execute`, {});
    await harness.reach(workflowId, started.string("runId"), "completed");
    path = `/workflows/${workflowId}/runs/${started.string("runId")}`;
    anyPath = `/workflows/runs/${started.string("runId")}`;
  });

  after(() => harness?.close());

  /** How many of twelve reads are under way at once. */
  const mostOf = async (read: () => Promise<{ status: number }>) => {
    const { workflowRuns } = harness.test.platform.store;
    const { get } = workflowRuns;
    let running = 0;
    let most = 0;
    workflowRuns.get = async (...asked) => {
      running += 1;
      most = Math.max(most, running);
      const run = await get(...asked);
      running -= 1;
      return run;
    };
    const stranger = makeClient({ url: harness.test.url, key: harness.test.keys.stranger });
    const all = await whileOthersWork(stranger, () => Promise.all(Array.from({ length: 12 }, read)));
    workflowRuns.get = get;
    expect(all.map(({ status }) => status)).to.deep.equal(all.map(() => 200));
    return most;
  };

  it("is read two at a time for a tenant while others work, before its size is known", async () => {
    expect(await mostOf(() => harness.member.get(anyPath))).to.be.at.most(2);
  });

  it("is read one at a time for a tenant while others work, once its answers were seen to be large", async () => {
    expect((await harness.member.get(path)).text.length).to.be.above(STEPS * STEP_CHARACTERS);
    expect(await mostOf(() => harness.member.get(path))).to.equal(1);
  });
});
