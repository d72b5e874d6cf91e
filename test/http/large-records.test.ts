import { expect } from "chai";
import { makeClient } from "../support/http-client.ts";
import { chatModel, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

/** What the steps of a run say: its record, and each answer with it, is as large. */
const STEPS = 40;
const STEP_CHARACTERS = 10_000;

describe("a large record", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness();
  });
  after(() => harness?.close());

  it("is read one at a time for a tenant while others work, once its answers were seen to be large", async () => {
    harness.model.play(() => ({ text: "x".repeat(STEP_CHARACTERS) }));
    const step = { type: "ai_completion", model: chatModel, prompt: "Hi" };
    const workflowId = await harness.create(Array.from({ length: STEPS }, () => step));
    const started = await harness.member.post(`/workflows/${workflowId}/execute`, {});
    await harness.reach(workflowId, started.string("runId"), "completed");
    const path = `/workflows/${workflowId}/runs/${started.string("runId")}`;
    expect((await harness.member.get(path)).text.length).to.be.above(STEPS * STEP_CHARACTERS);
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
    await stranger.get("/jobs");
    const read = await Promise.all(Array.from({ length: 12 }, () => harness.member.get(path)));
    workflowRuns.get = get;
    expect(most).to.equal(1);
    expect(read.map(({ status }) => status)).to.deep.equal(read.map(() => 200));
  });
});
