import { expect } from "chai";
import { queues } from "../../src/jobs/queues.ts";
import { pollUntil } from "../support/poll-until.ts";
import { tenantOf } from "../support/tenant-of.ts";
import {
  chatModel,
  condition,
  openWorkflowHarness,
  stepsOf,
  type WorkflowHarness,
} from "../support/workflow-harness.ts";

describe("approvals", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness();
    harness.model.play(() => ({ text: "A draft." }));
  });
  after(() => harness?.close());

  const draft = { type: "ai_completion", id: "draft", model: chatModel, prompt: "Draft." };
  const ask = (fields: object = {}) => ({ type: "human_approval", id: "sign", assigneeRole: "admin", ...fields });
  /** A run that waits for a decision. */
  const waiting = async (steps: object[], input?: unknown) => {
    const workflowId = await harness.create(steps);
    const runId = await harness.start(workflowId, input);
    const run = await harness.reach(workflowId, runId, "awaiting_approval");
    return { workflowId, runId, jobId: run.string("jobId"), approvalId: run.string("awaiting.approvalId"), run };
  };
  const decidePath = (approvalId: string) => `/workflows/approvals/${approvalId}/decide`;

  it("hold no worker and no job in Redis while they wait, and show what the decision is about", async () => {
    const { test, member } = harness;
    const message = "Send {{ steps.draft.output }} to {{ input.to }}?";
    const { workflowId, runId, jobId, approvalId } = await waiting([draft, ask({ message })], {
      to: "Ana",
    });
    await pollUntil(async () => {
      const live = await test.platform.queues.findLive(queues.workflowSteps.name, [jobId]);
      return live.size === 0;
    });
    const record = await test.platform.store.jobs.findById(jobId);
    expect(record?.status).to.equal("awaiting");
    expect(record?.lease).to.equal(undefined);
    expect(record?.checkAt, "nothing looks after it, however long it waits").to.equal(undefined);

    const listed = await member.get("/workflows/approvals");
    const found = (listed.at("data") as { approvalId: string }[]).find((one) => one.approvalId === approvalId);
    expect(found).to.deep.include({
      workflowId,
      runId,
      workflowName: "Desk",
      stepId: "sign",
      assigneeRole: "admin",
      status: "pending",
      message: "Send A draft. to Ana?",
    });
    const detail = await harness.admin.get(`/workflows/approvals/${approvalId}`);
    expect(detail.at("mayDecide")).to.equal(true);
    expect(detail.at("run.steps[0].output")).to.equal("A draft.");
    expect(detail.at("run.costUsd")).to.be.greaterThan(0);
    expect((await member.get(`/workflows/approvals/${approvalId}`)).at("mayDecide")).to.equal(false);
    const days = Date.parse(detail.string("expiresAt")) - Date.parse(detail.string("createdAt"));
    expect(days).to.equal(7 * 86_400_000);
  });

  it("are decided by keys with the role; the decider is the key's subject, even if the body names another", async () => {
    const { member, admin, owner } = harness;
    const decide = { decision: "approved", comment: "Fine.", decided_by: "somebody else", decidedBy: "me" };
    const forOwner = await waiting([ask({ assigneeRole: "owner" })]);
    for (const client of [member, admin]) {
      const refused = await client.post(decidePath(forOwner.approvalId), decide);
      expect([refused.status, refused.at("error.code")]).to.deep.equal([403, "insufficient_role"]);
    }
    const once = { headers: { "idempotency-key": "decide once" } };
    const byOwner = await owner.post(decidePath(forOwner.approvalId), decide, once);
    expect(byOwner.status, byOwner.text).to.equal(200);
    expect((await owner.post(decidePath(forOwner.approvalId), decide, once)).text).to.equal(byOwner.text);
    for (const client of [member, admin]) {
      const repeat = await client.post(decidePath(forOwner.approvalId), decide, once);
      expect(repeat.status, "a repeat of the owner's call").to.be.oneOf([403, 409]);
      expect(repeat.text).not.to.contain("Fine.");
    }
    expect(byOwner.body).to.include({ status: "approved", decidedBy: "owner@test", comment: "Fine." });
    expect(byOwner.body, "the interface's names").to.include({ decision: "approved", decided_by: "owner@test" });

    const forAdmin = await waiting([ask(), { ...draft, prompt: "By {{ steps.sign.output.decidedBy }}" }]);
    expect((await member.post(decidePath(forAdmin.approvalId), decide)).status).to.equal(403);
    const byAdmin = await admin.post(decidePath(forAdmin.approvalId), decide);
    expect(byAdmin.at("decidedBy")).to.equal("admin@test");
    expect(byAdmin.at("runStatus")).to.be.oneOf(["running", "completed"]);
    const run = await harness.reach(forAdmin.workflowId, forAdmin.runId, "completed");
    expect(run.at("steps[0].output")).to.deep.include({
      decision: "approved",
      comment: "Fine.",
      decidedBy: "admin@test",
    });
    expect(harness.model.calls.at(-1)?.input).to.equal("By admin@test");
    const ownerToo = await waiting([ask()]);
    expect((await owner.post(decidePath(ownerToo.approvalId), { decision: "approved" })).status).to.equal(200);
    for (const body of [{}, { decision: "maybe" }, { decision: "approved", comment: "x".repeat(4_001) }]) {
      expect((await admin.post(decidePath(forAdmin.approvalId), body)).status).to.equal(400);
    }
  });

  it("stop the run at once when they are rejected", async () => {
    const before = harness.model.calls.length;
    const { workflowId, runId, jobId, approvalId } = await waiting([ask(), draft]);
    const rejected = await harness.admin.post(decidePath(approvalId), { decision: "rejected", comment: "Too early." });
    expect(rejected.at("runStatus")).to.equal("rejected");
    const run = await harness.member.get(`/workflows/${workflowId}/runs/${runId}`);
    expect(run.at("status")).to.equal("rejected");
    expect(stepsOf(run).map(({ output }) => output)).to.deep.equal([
      {
        decision: "rejected",
        comment: "Too early.",
        decidedBy: "admin@test",
        decidedAt: rejected.at("decidedAt"),
      },
    ]);
    const job = await harness.member.get(`/jobs/${jobId}`);
    expect([job.at("status"), job.at("result.status")]).to.deep.equal(["completed", "rejected"]);
    expect(harness.model.calls.length).to.equal(before);
    const again = await harness.admin.post(decidePath(approvalId), { decision: "approved" });
    expect(again.status).to.equal(409);
    expect(again.at("error.details.status")).to.equal("rejected");
    expect(again.at("error.details.decidedBy")).to.equal("admin@test");
    expect(again.at("error.details.comment")).to.equal("Too early.");
  });

  it("are won by exactly one of two decisions that race, 40 times", async () => {
    const workflowId = await harness.create([ask(), condition("true", [])]);
    let approved = 0;
    const decideBoth = async (_: unknown, at: number) => {
      const runId = await harness.start(workflowId);
      const run = await harness.reach(workflowId, runId, "awaiting_approval");
      const path = decidePath(run.string("awaiting.approvalId"));
      const approve = () => harness.admin.post(path, { decision: "approved" });
      const reject = () => harness.owner.post(path, { decision: "rejected" });
      // Each side is sent first in half of the races.
      const sent = at % 2 === 0 ? { yes: approve(), no: reject() } : { no: reject(), yes: approve() };
      const [yes, no] = await Promise.all([sent.yes, sent.no]);
      expect([yes.status, no.status].sort()).to.deep.equal([200, 409]);
      const won = yes.status === 200 ? "approved" : "rejected";
      if (won === "approved") approved += 1;
      const lost = yes.status === 200 ? no : yes;
      expect(lost.at("error.details.status")).to.equal(won);
      const ended = await harness.reach(workflowId, runId, "completed", "rejected");
      expect(ended.at("status")).to.equal(won === "approved" ? "completed" : "rejected");
      expect(ended.at("steps[0].output.decision")).to.equal(won);
      expect(ended.at("steps[0].output.decidedBy")).to.equal(won === "approved" ? "admin@test" : "owner@test");
    };
    for (let round = 0; round < 2; round += 1) await Promise.all(Array.from({ length: 20 }, decideBoth));
    expect(approved, "both sides win now and then").to.be.within(1, 39);
  });

  it("expire when nobody decides in time, and are never approved by themselves", async () => {
    const { workflowId, runId, approvalId, jobId } = await waiting([ask({ timeoutMs: 1_000 }), draft]);
    await harness.reach(workflowId, runId, "expired"); // as it reads from its deadline on; a sweep writes its end
    expect((await harness.member.get(`/workflows/approvals/${approvalId}`)).at("status")).to.equal("expired");
    const jobOf = async () => (await harness.member.get(`/jobs/${jobId}`)).at("result.status");
    await pollUntil(async () => (await jobOf()) === "expired", { what: "the end of the job, which follows the run's" });
    const run = await harness.member.get(`/workflows/${workflowId}/runs/${runId}`);
    expect(run.at("steps[0].output.decision")).to.equal("expired");
    const late = await harness.admin.post(decidePath(approvalId), { decision: "approved" });
    expect([late.status, late.at("error.details.status")]).to.deep.equal([409, "expired"]);
  });

  it("read as expired from their deadline on, on every route, even before a sweep finds them", async () => {
    const quiet = await openWorkflowHarness({ env: { RECONCILE_EVERY_MS: "600000" } });
    try {
      const workflowId = await quiet.create([ask({ timeoutMs: 1_000 })]);
      const runId = await quiet.start(workflowId);
      const run = await quiet.reach(workflowId, runId, "awaiting_approval");
      const approvalId = run.string("awaiting.approvalId");
      const other = await quiet.start(workflowId);
      const awaiting = await quiet.reach(workflowId, other, "awaiting_approval", "expired");
      await pollUntil(() => Date.now() > Date.parse(run.string("awaiting.expiresAt")));
      const late = await quiet.admin.post(decidePath(approvalId), { decision: "approved" });
      expect([late.status, late.at("error.details.status")], late.text).to.deep.equal([409, "expired"]);
      const job = await quiet.member.get(`/jobs/${run.string("jobId")}`);
      expect([job.at("status"), job.at("result.status")]).to.deep.equal(["completed", "expired"]);
      await pollUntil(() => Date.now() > Date.parse(awaiting.string("awaiting.expiresAt")));
      const listed = await quiet.member.get(`/workflows/${workflowId}/runs`);
      expect(listed.at("data[0].status")).to.equal("expired");
      const read = await quiet.member.get(`/workflows/${workflowId}/runs/${other}`);
      expect([read.at("status"), read.at("steps[0].output.decision")]).to.deep.equal(["expired", "expired"]);
      const third = await quiet.reach(workflowId, await quiet.start(workflowId), "awaiting_approval");
      await pollUntil(() => Date.now() > Date.parse(third.string("awaiting.expiresAt")));
      const ended = await quiet.member.get(`/jobs/${third.string("jobId")}`);
      expect([ended.at("status"), ended.at("result.status")], "read by its job alone").to.deep.equal([
        "completed",
        "expired",
      ]);
      const fourth = await quiet.reach(workflowId, await quiet.start(workflowId), "awaiting_approval");
      await pollUntil(() => Date.now() > Date.parse(fourth.string("awaiting.expiresAt")));
      expect((await quiet.member.get("/jobs?status=awaiting")).at("data"), "read by a list of jobs").to.deep.equal([]);
      expect((await quiet.member.get("/workflows/approvals")).at("data")).to.deep.equal([]);
      expect((await quiet.member.get("/workflows/approvals?status=expired")).at("data")).to.have.lengthOf(4);
    } finally {
      await quiet.close();
    }
  });

  it("end the wait of a caller as soon as the run awaits them, and keep the start of their step", async () => {
    const workflowId = await harness.create([ask()]);
    const headers = { prefer: "wait=60" };
    const started = await harness.member.post(`/workflows/${workflowId}/execute`, {}, { headers }); // the test's own limit is 60 s
    expect([started.status, started.at("status")]).to.deep.equal([202, "awaiting"]);
    const runId = started.string("runId");
    const run = await harness.reach(workflowId, runId, "awaiting_approval");
    expect(run.at("awaiting.pageUrl")).to.equal("/approvals");
    await harness.admin.post(decidePath(run.string("awaiting.approvalId")), { decision: "approved" });
    const ended = await harness.reach(workflowId, runId, "completed");
    expect(ended.at("steps[0].startedAt")).to.equal(run.at("steps[0].startedAt"));
  });

  it("are applied again to a run that missed them because a process died in between", async () => {
    const { workflowId, runId, approvalId } = await waiting([ask(), draft]);
    const { platform } = harness.test;
    const tenantId = await tenantOf(harness.test);
    const longAgo = new Date(Date.now() - 60_000);
    await platform.store.approvals.decide(tenantId, approvalId, { status: "approved", decidedBy: "x" }, longAgo);
    const run = await harness.reach(workflowId, runId, "completed");
    expect(run.at("steps[0].output.decidedBy")).to.equal("x");
  });

  it("are limited to the number of open jobs, even if an agent starts the workflow", async () => {
    const small = await openWorkflowHarness({ env: { MAX_OPEN_JOBS: "3" } });
    try {
      const { member, admin, model } = small;
      const workflowId = await small.create([ask()]);
      const begin = async () =>
        small.reach(workflowId, await small.start(workflowId), "awaiting_approval").then((run) => run.at("awaiting"));
      const open = async () => (await member.get("/usage")).at("quotas.openJobs");
      const pending = async () => (await member.get("/workflows/approvals")).at("data");
      const { approvalId } = (await begin()) as { approvalId: string };
      await begin();
      expect(await open()).to.deep.equal({ used: 2, limit: 3 });
      const names = ["workflow", "composite"];
      model.play(({ turn }) => {
        const name = names[turn - 1];
        return name === undefined ? { text: "" } : { calls: [{ name, arguments: { input: "Ask." } }] };
      });
      const council = { pattern: "critique", profile: "support" };
      const tools = [
        { type: "workflow", config: { workflowId } },
        { type: "composite", config: council },
      ];
      const agent = { name: "Clerk", model: chatModel, systemPrompt: "You keep the desk.", tools };
      const agentId = (await member.post("/agents", agent)).string("agentId");
      const asked = await member.post(`/agents/${agentId}/run`, { input: "Ask." });
      const audit = await member.get(`/agents/${agentId}/runs/${asked.string("runId")}`);
      for (const [step, name] of names.entries()) {
        expect(audit.at(`steps[${step}].isError`), name).to.equal(true);
        expect(audit.at(`steps[${step}].observation`), "the run of the agent is the third").to.include("MAX_OPEN_JOBS");
      }
      expect(await pending()).to.have.lengthOf(2);
      await begin(); // in the place of the agent
      const refused = await member.post(`/workflows/${workflowId}/execute`, {});
      expect([refused.status, refused.at("error.details.quota")], refused.text).to.deep.equal([429, "openJobs"]);
      expect(await pending()).to.have.lengthOf(3);
      await admin.post(decidePath(approvalId), { decision: "rejected" });
      await pollUntil(async () => Object(await open()).used === 2);
      await begin();
    } finally {
      await small.close();
    }
  });
});
