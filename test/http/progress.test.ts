import { expect } from "chai";
import { valueAt } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { chatModel, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

describe("the progress of a job", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness();
  });
  beforeEach(() => harness.model.play(() => ({ text: "Fine." })));
  after(() => harness.close());

  const ask = (id: string) => ({
    id,
    type: "ai_completion",
    model: chatModel,
    prompt: "Go",
    retry: { attempts: 1, backoffMs: 0 },
  });
  const sign = { id: "sign", type: "human_approval", assigneeRole: "admin" };
  // biome-ignore lint/suspicious/noThenProperty: the name that conditions have for a branch
  const either = { id: "either", type: "condition", expression: "true", then: [ask("two")], else: [ask("three")] };
  const start = async (steps: object[]) => {
    const workflowId = await harness.create(steps);
    const started = await harness.member.post(`/workflows/${workflowId}/execute`);
    return { jobId: started.string("jobId"), runId: started.string("runId"), workflowId };
  };
  const jobOf = (jobId: string) => harness.member.get(`/jobs/${jobId}`);
  const reach = (jobId: string, ...states: string[]) =>
    pollUntil(async () => {
      const job = await jobOf(jobId);
      return states.includes(String(job.at("status"))) ? job : undefined;
    });
  const inList = async (jobId: string) => {
    const { body } = await harness.member.get("/jobs?kind=workflow");
    return (valueAt(body, "data") as { jobId: string; progress: unknown }[]).find((one) => one.jobId === jobId)
      ?.progress;
  };

  it("says how many of a workflow's steps are done, while it waits and at its end", async () => {
    const { jobId } = await start([ask("one"), either, sign]);
    const waiting = await reach(jobId, "awaiting");
    expect(waiting.at("progress")).to.deep.equal({ stage: "awaiting_approval", done: 3, total: 5 });
    const { member, admin } = harness;
    const approvals = await member.get("/workflows/approvals");
    await admin.post(`/workflows/approvals/${valueAt(approvals.body, "data[0].approvalId")}/decide`, {
      decision: "approved",
    });
    expect((await reach(jobId, "completed")).at("progress")).to.deep.equal({ stage: "completed", done: 5, total: 5 });
  });

  it("says that a run was rejected or has expired, in lists too", async () => {
    for (const [decision, stage] of [
      ["rejected", "rejected"],
      [undefined, "expired"],
    ] as const) {
      const { jobId, runId, workflowId } = await start([
        { ...sign, ...(decision ? {} : { timeoutMs: 1_000 }) },
        ask("one"),
      ]);
      await reach(jobId, "awaiting");
      if (decision) {
        const run = await harness.member.get(`/workflows/${workflowId}/runs/${runId}`);
        await harness.admin.post(`/workflows/approvals/${run.string("awaiting.approvalId")}/decide`, { decision });
      }
      const ended = await reach(jobId, "completed");
      expect([ended.at("progress.stage"), ended.at("result.status")]).to.deep.equal([stage, stage]);
      expect(await inList(jobId)).to.deep.include({ stage, total: 2 });
    }
  });

  it("says that a job has failed or was cancelled, and how far it came", async () => {
    harness.model.play(({ input }) => (input === "Go" ? { status: 400 } : { text: "Fine." }));
    const failing = await start([{ ...ask("one"), prompt: "Begin" }, ask("two")]);
    expect((await reach(failing.jobId, "failed")).at("progress")).to.deep.equal({ stage: "failed", done: 2, total: 2 });
    const waiting = await start([{ ...ask("one"), prompt: "Begin" }, sign]);
    await reach(waiting.jobId, "awaiting");
    await harness.member.post(`/jobs/${waiting.jobId}/cancel`);
    expect((await jobOf(waiting.jobId)).at("progress")).to.deep.equal({ stage: "cancelled", done: 1, total: 2 });
  });

  it("counts the iterations of an agent", async () => {
    const { member, model } = harness;
    const held = Promise.withResolvers<{ text: string }>();
    model.play(({ turn }) => (turn === 1 ? { calls: [{ name: "current_time", arguments: {} }] } : held.promise));
    const agent = { name: "Clerk", model: chatModel, systemPrompt: "Help.", tools: [{ type: "current_time" }] };
    const agentId = (await member.post("/agents", agent)).string("agentId");
    const headers = { prefer: "respond-async" };
    const jobId = (await member.post(`/agents/${agentId}/run`, { input: "Go." }, { headers })).string("jobId");
    await pollUntil(async () => (await jobOf(jobId)).at("progress.done") === 1);
    expect((await jobOf(jobId)).at("progress")).to.deep.equal({ stage: "steps", done: 1, total: 2 });
    held.resolve({ text: "Done." });
    expect((await reach(jobId, "completed")).at("progress")).to.deep.equal({ stage: "completed", done: 2, total: 2 });
  });
});
