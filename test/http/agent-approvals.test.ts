import { expect } from "chai";
import type { AgentHarness } from "../support/agent-harness.ts";
import { type ApprovalRuns, useApprovalRuns } from "../support/approval-run.ts";
import { pollUntil } from "../support/poll-until.ts";

describe("approvals of agents' tool calls", function () {
  this.timeout(60_000);
  let harness: AgentHarness;
  let runs: ApprovalRuns;
  useApprovalRuns((opened) => {
    ({ harness, runs } = opened);
  });

  const chainOf = async (runId: string) => {
    const caller = (await harness.platform.tenancy.authenticate(harness.key)) ?? expect.fail("an unknown key");
    return harness.platform.store.audit.list(caller.tenantId, runId);
  };

  it("hold neither worker nor queue, show the call, and let it be made once with what was approved", async () => {
    runs.callOnce(runs.pay(7));
    const agentId = await runs.createAgent([runs.payTool({ message: "Check the invoice." })]);
    const { runId, jobId, path } = await runs.start(agentId);
    const [approval] = await runs.pending(runId);
    const open = await runs.reach(path, "awaiting_approval");
    const job = await harness.platform.store.jobs.findById(jobId);
    expect(job).to.include({ status: "awaiting", attempts: 0 }).and.not.to.have.any.keys("lease", "checkAt");
    await pollUntil(async () => (await harness.platform.queues.findLive("agent-runs", [jobId])).size === 0);
    expect(approval).to.deep.include({ kind: "agent", toolName: "pay", message: "Check the invoice.", agentId, jobId });
    expect(approval?.arguments).to.deep.equal(runs.pay(7).arguments);
    expect(open.at("awaiting[0]")).to.include({ kind: "approval", approvalId: approval?.approvalId, toolName: "pay" });
    const shown = await harness.admin.get(`/workflows/approvals/${approval?.approvalId}`);
    expect([shown.at("mayDecide"), shown.at("agentRun.steps[0].thought")]).to.deep.equal([true, "I call."]);
    expect(Number(shown.at("agentRun.costUsd"))).to.be.greaterThan(0);
    expect(runs.effects).to.deep.equal([]);
    const decided = await runs.decide(approval?.approvalId ?? "", "approved", "Fine.");
    expect(decided.status, decided.text).to.equal(200);
    expect(decided.body).to.deep.include({ status: "approved", comment: "Fine.", toolName: "pay" });
    const ended = await runs.reach(path, "completed");
    expect(runs.effects).to.deep.equal([
      { path: "/pay", body: '{"amount":7}', key: ended.at("steps[0].idempotencyKey") },
    ]);
    expect(harness.upstream.calls, "the model was asked for each turn once").to.have.lengthOf(2);
    expect(ended.at("integrity.verified")).to.equal(true);
    expect(ended.at("steps[0].approval")).to.include({ status: "approved", comment: "Fine." });
    const kinds = (await chainOf(runId)).map(({ content }) => content.kind);
    expect(kinds).to.deep.equal(["intention", "asked", "decided", "observation", "answer"]);
    const again = await runs.decide(approval?.approvalId ?? "", "rejected");
    expect([again.status, again.at("error.details.status")]).to.deep.equal([409, "approved"]);
  });

  it("are one for each of parallel calls, in any order; calls that need none are made first", async () => {
    harness.site.on(
      "/look",
      (_, response) => void response.writeHead(200, { "content-type": "text/plain" }).end("seen"),
    );
    const look = { name: "look", arguments: { url: `${harness.site.origin}/look` } };
    runs.callOnce(runs.pay(1), look, runs.pay(2), runs.pay(3));
    const agentId = await runs.createAgent([runs.payTool(), runs.payTool(null, "look")]);
    const { runId, path } = await runs.start(agentId);
    const open = await runs.pending(runId, 3);
    await runs.reach(path, "awaiting_approval");
    expect(harness.site.requests.filter((one) => one.path === "/look")).to.have.lengthOf(1);
    expect(new Set(open.map(({ approvalId }) => approvalId)).size).to.equal(3);
    await runs.decide(open[2]?.approvalId ?? "", "approved");
    await pollUntil(() => runs.paid().length === 1);
    expect(runs.paid(), "the last one was approved first").to.deep.equal([3]);
    await runs.pending(runId, 2);
    await runs.decide(open[0]?.approvalId ?? "", "rejected", "Too early.");
    await runs.decide(open[1]?.approvalId ?? "", "approved");
    const ended = await runs.reach(path, "completed");
    expect(runs.paid()).to.deep.equal([2, 3]);
    expect(
      harness.site.requests.filter((one) => one.path === "/look"),
      "once",
    ).to.have.lengthOf(1);
    expect(ended.string("finalOutput")).to.contain("admin@test rejected it. Their comment: Too early.");
    expect(harness.upstream.calls).to.have.lengthOf(2);
  });

  it("are needed by rule, over arguments and context; a rule that cannot be evaluated needs one", async () => {
    const agentId = await runs.createAgent([
      runs.payTool({ when: 'arguments.body.contains("999") || context.tier == "new"' }),
    ]);
    runs.callOnce(runs.pay(5));
    await runs.reach((await runs.start(agentId, { context: { tier: "old" } })).path, "completed");
    expect(runs.paid()).to.deep.equal([5]);
    const asked = [
      [runs.pay(999), { tier: "old" }],
      [runs.pay(5), { tier: "new" }],
      [runs.pay(5), {}],
    ] as const;
    for (const [call, context] of asked) {
      runs.callOnce(call);
      const { runId, path } = await runs.start(agentId, { context });
      await runs.pending(runId);
      await harness.member.post(`/jobs/${(await harness.member.get(path)).string("jobId")}/cancel`);
      await runs.pending(runId, 0);
    }
    for (const [when, param] of [
      ["arguments.amount >", "tools[0].approval.when"],
      ["input.x == 1", "tools[0].approval.when"],
      ["1 + 1", "tools[0].approval.when"],
    ]) {
      const tools = [runs.payTool({ when })];
      const body = { name: "P", model: harness.model, systemPrompt: "x", tools };
      const refused = await harness.member.post("/agents", body);
      expect([refused.status, refused.at("error.param")], String(when)).to.deep.equal([400, param]);
    }
  });

  it("expire: the model reads that, or the run is stopped", async () => {
    for (const [onExpiry, status, text] of [
      ["observe", "completed", "nobody decided on it in time"],
      ["stop", "stopped", "I call."],
    ] as const) {
      runs.callOnce(runs.pay(1));
      const agentId = await runs.createAgent([runs.payTool({ timeoutMs: 1_000, onExpiry })]);
      const { runId, path } = await runs.start(agentId);
      const [approval] = await runs.pending(runId);
      const ended = await runs.reach(path, "completed", "stopped", "failed");
      expect([ended.at("status"), ended.at("stopReason")]).to.deep.equal([
        status,
        onExpiry === "stop" ? "approval_expired" : undefined,
      ]);
      expect(ended.string("finalOutput")).to.contain(text);
      const late = await runs.decide(approval?.approvalId ?? "", "approved");
      expect([late.status, late.at("error.details.status")]).to.deep.equal([409, "expired"]);
      expect(ended.at("integrity.verified")).to.equal(true);
    }
    expect(runs.effects).to.deep.equal([]);
  });

  it("are decided by the role, and not by the run's own key unless the agent allows it", async () => {
    const { admin, member, stranger } = harness;
    const adminRuns = async (more: object) => {
      runs.callOnce(runs.pay(1));
      const agentId = await runs.createAgent([runs.payTool()], more);
      const options = { headers: { prefer: "respond-async" } };
      const started = await admin.post(`/agents/${agentId}/run`, { input: "Pay." }, options);
      const [approval] = await runs.pending(started.string("runId"));
      return { id: approval?.approvalId ?? "", path: `/agents/${agentId}/runs/${started.string("runId")}` };
    };
    const closed = await adminRuns({});
    expect((await admin.get(`/workflows/approvals/${closed.id}`)).at("mayDecide")).to.equal(false);
    expect((await runs.decide(closed.id, "approved")).at("error.code")).to.equal("insufficient_role");
    expect((await member.post(`/workflows/approvals/${closed.id}/decide`, { decision: "approved" })).status).to.equal(
      403,
    );
    expect((await stranger.get(`/workflows/approvals/${closed.id}`)).status).to.equal(404);
    const free = await adminRuns({ allowSelfApproval: true });
    expect((await runs.decide(free.id, "rejected")).status).to.equal(200);
    await runs.reach(free.path, "completed");
    // The owner of a tenant with one key may; one that has expired decides nothing.
    const solo = stranger;
    const expiresAt = new Date(Date.now() + 300).toISOString();
    expect((await solo.post("/keys", { role: "admin", subject: "gone@test", expiresAt })).status).to.equal(201);
    const made = await solo.post("/agents", {
      name: "P",
      model: harness.model,
      systemPrompt: "x",
      tools: [runs.payTool()],
    });
    runs.callOnce(runs.pay(2));
    const started = await solo.post(`/agents/${made.string("agentId")}/run`, { input: "Pay." });
    expect(started.status, "the call ends as soon as the run waits").to.equal(202);
    const list = await pollUntil(async () => {
      const found = await solo.get("/workflows/approvals");
      return (found.at("data") as object[]).length === 1 ? found : undefined;
    });
    const approval = `/workflows/approvals/${list.string("data[0].approvalId")}`;
    await pollUntil(async () => (await solo.get(approval)).at("mayDecide"), { what: "the end of the other key" });
    const decided = await solo.post(`${approval}/decide`, { decision: "approved" });
    expect(decided.status, decided.text).to.equal(200);
    await pollUntil(() => runs.paid().includes(2));
  });

  it("are withdrawn with their run, when it is cancelled or fails", async () => {
    runs.callOnce(runs.pay(1), runs.pay(2));
    const agentId = await runs.createAgent([runs.payTool()]);
    const { runId, jobId } = await runs.start(agentId);
    const open = await runs.pending(runId, 2);
    await pollUntil(async () => (await harness.platform.store.jobs.findById(jobId))?.status === "awaiting");
    expect((await harness.member.post(`/jobs/${jobId}/cancel`)).status).to.equal(200);
    await runs.pending(runId, 0);
    for (const { approvalId } of open) {
      const late = await runs.decide(approvalId, "approved");
      expect([late.status, late.at("error.details.status")]).to.deep.equal([409, "cancelled"]);
    }
    expect(runs.effects).to.deep.equal([]);
  });

  it("are asked for by an agent that another one has called", async () => {
    const inner = await runs.createAgent([runs.payTool()], { name: "Inner", systemPrompt: "You are the inner one." });
    const outer = await runs.createAgent([{ type: "agent", name: "ask", config: { agentId: inner } }]);
    harness.upstream.play(({ turn, messages }) => {
      const isInner = messages[0]?.content?.includes("the inner one");
      if (turn > 1) return { text: messages.at(-1)?.content ?? "" };
      return { calls: [isInner ? runs.pay(4) : { name: "ask", arguments: { input: "Pay 4." } }] };
    });
    const { runId, path } = await runs.start(outer);
    const open = await runs.reach(path, "awaiting_approval");
    const awaited = open.at("awaiting[0]") as { runId: string; approvalId: string };
    expect(awaited.runId).not.to.equal(runId);
    await runs.decide(awaited.approvalId, "approved");
    const ended = await runs.reach(path, "completed");
    expect(runs.paid()).to.deep.equal([4]);
    expect(ended.string("finalOutput")).to.contain("paid");
    expect(harness.upstream.calls).to.have.lengthOf(4);
    const innerRun = await harness.member.get(`/agents/${inner}/runs/${awaited.runId}`);
    expect(innerRun.at("integrity.verified")).to.equal(true);
  });

  it("refuse a definition that they do not know", async () => {
    for (const approval of [{ assigneeRole: "member" }, { role: "admin" }, { timeoutMs: 5 }, { onExpiry: "approve" }]) {
      const tools = [runs.payTool(approval)];
      const refused = await harness.member.post("/agents", {
        name: "P",
        model: harness.model,
        systemPrompt: "x",
        tools,
      });
      expect(refused.status, JSON.stringify(approval)).to.equal(400);
    }
  });
});
