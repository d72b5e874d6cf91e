import { expect } from "chai";
import type { AgentHarness } from "../support/agent-harness.ts";
import { type ApprovalRuns, useApprovalRuns } from "../support/approval-run.ts";
import { pollUntil } from "../support/poll-until.ts";

/** What users of other frameworks have reported of approvals, as scripts against the API. Each test names the report. */
describe("reports about approvals", function () {
  this.timeout(60_000);
  let harness: AgentHarness;
  let runs: ApprovalRuns;
  useApprovalRuns((opened) => {
    ({ harness, runs } = opened);
  });

  it("extra 139: a model that would say something else on a resume is not asked, and the approved call is made", async () => {
    let asked = 0;
    harness.upstream.play(({ turn }) => {
      asked += 1;
      return turn === 1 ? { calls: [runs.pay(asked === 1 ? "reviewed" : "changed")] } : { text: "Done." };
    });
    const { runId, path } = await runs.start(await runs.createAgent([runs.payTool()]));
    const [approval] = await runs.pending(runId);
    await runs.decide(approval?.approvalId ?? "", "approved");
    await runs.reach(path, "completed");
    expect([runs.paid(), asked]).to.deep.equal([["reviewed"], 2]);
  });

  it("extra 139: a call that is not the approved one any more is not made", async () => {
    runs.callOnce(runs.pay(1));
    const { runId, path } = await runs.start(await runs.createAgent([runs.payTool()]));
    const [approval] = await runs.pending(runId);
    const { approvals } = harness.platform.store;
    const { get } = approvals;
    approvals.get = async (...args) => {
      const found = await get(...args);
      return found?.kind === "agent" ? { ...found, argumentsHash: "another" } : found;
    };
    try {
      await runs.decide(approval?.approvalId ?? "", "approved");
      const ended = await runs.reach(path, "completed");
      expect(ended.string("finalOutput")).to.contain("it is not the one that was to be approved");
    } finally {
      approvals.get = get;
    }
    expect(runs.effects).to.deep.equal([]);
  });

  for (const order of [
    [0, 1],
    [1, 0],
  ] as const) {
    it(`langgraph 6533: each parallel call gets the decision on itself (${order.join(", then ")})`, async () => {
      runs.callOnce(runs.pay("a", "pay_a"), runs.pay("b", "pay_b"));
      const agentId = await runs.createAgent([runs.payTool({}, "pay_a"), runs.payTool({}, "pay_b")]);
      const { runId, path } = await runs.start(agentId);
      const open = await runs.pending(runId, 2);
      for (const at of order) {
        const { approvalId = "", toolName } = open[at] ?? {};
        await runs.decide(approvalId, "rejected", `for ${toolName}`);
      }
      const ended = await runs.reach(path, "completed");
      const actions = ended.at("steps[0].actions") as { action: string; observation: string }[];
      for (const { action, observation } of actions) expect(observation).to.contain(`for ${action}`);
    });
  }

  it("langgraph 7780: a call that is asked for again and again is resumed once for each decision", async () => {
    harness.upstream.play(({ turn, messages }) =>
      turn < 4 && !messages.some(({ content }) => content?.includes("paid"))
        ? { calls: [runs.pay(1)] }
        : { text: "Done." },
    );
    const { runId, path } = await runs.start(await runs.createAgent([runs.payTool()]));
    const seen = new Set<string>();
    for (const decision of ["rejected", "rejected", "approved"] as const) {
      const approval = await pollUntil(async () => {
        const [one] = await runs.pending(runId);
        return one && !seen.has(one.approvalId) ? one : undefined;
      });
      seen.add(approval.approvalId);
      await runs.decide(approval.approvalId, decision, "no");
    }
    const ended = await runs.reach(path, "completed");
    expect([runs.paid(), harness.upstream.calls.length, seen.size]).to.deep.equal([[1], 4, 3]);
    const decisions = (ended.at("steps") as { approval?: { status: string } }[]).map((step) => step.approval?.status);
    expect(decisions).to.deep.equal(["rejected", "rejected", "approved", undefined]);
  });

  it("mastra 16675: two parallel calls of the same tool with the same arguments are two approvals", async () => {
    runs.callOnce(runs.pay(1), runs.pay(1));
    const { runId, path } = await runs.start(await runs.createAgent([runs.payTool()]));
    const open = await runs.pending(runId, 2);
    await runs.decide(open[0]?.approvalId ?? "", "approved");
    await pollUntil(() => runs.effects.length === 1);
    await runs.decide(open[1]?.approvalId ?? "", "approved");
    const ended = await runs.reach(path, "completed");
    expect([runs.paid(), new Set(runs.effects.map(({ key }) => key)).size]).to.deep.equal([[1, 1], 2]);
    const tools = harness.upstream.calls.at(-1)?.messages.filter(({ role }) => role === "tool") ?? [];
    expect(
      tools.map(({ content }) => content?.includes("paid")),
      "each call has its result",
    ).to.deep.equal([true, true]);
    expect(ended.at("integrity.verified")).to.equal(true);
  });

  it("mastra 19435: approvals of two agents that were called at once are all listed, and decided in any order", async () => {
    const inner = await runs.createAgent([runs.payTool()], { name: "Inner", systemPrompt: "the inner one" });
    const outer = await runs.createAgent([{ type: "agent", name: "ask", config: { agentId: inner } }]);
    harness.upstream.play(({ turn, messages, input }) => {
      if (turn > 1) return { text: "Done." };
      if (messages[0]?.content?.includes("the inner one")) return { calls: [runs.pay(input)] };
      return { calls: ["x", "y"].map((input) => ({ name: "ask", arguments: { input } })) };
    });
    const { path } = await runs.start(outer);
    const awaited = await pollUntil(async () => {
      const run = await harness.member.get(path);
      const found = (run.at("awaiting") ?? []) as { approvalId: string; runId: string }[];
      return found.length === 2 ? found : undefined;
    });
    expect(new Set(awaited.map(({ runId }) => runId)).size).to.equal(2);
    for (const { approvalId } of awaited.reverse()) {
      expect((await runs.decide(approvalId, "approved")).status).to.equal(200);
    }
    await runs.reach(path, "completed");
    expect([runs.paid(), harness.upstream.calls.length]).to.deep.equal([["x", "y"], 6]);
  });

  it("openai-agents-python 3004: what ran before the approval does not run again after it", async () => {
    let looked = 0;
    harness.site.on("/look", (_, response) => {
      looked += 1;
      response.writeHead(200, { "content-type": "text/plain" }).end(`look ${looked}`);
    });
    const look = { name: "look", arguments: { url: `${harness.site.origin}/look`, method: "POST", body: "{}" } };
    harness.upstream.play(({ turn }) => {
      if (turn === 1) return { calls: [look] };
      return turn === 2 ? { calls: [look, runs.pay(1), look] } : { text: "Done." };
    });
    const agentId = await runs.createAgent([runs.payTool(), runs.payTool(null, "look")]);
    const { runId, path } = await runs.start(agentId, { context: { any: "thing" } });
    const [approval] = await runs.pending(runId);
    await runs.decide(approval?.approvalId ?? "", "approved");
    await runs.reach(path, "completed");
    expect([looked, runs.paid(), harness.upstream.calls.length]).to.deep.equal([3, [1], 3]);
  });

  it("agent-framework 7692: a decision cannot bring another call along, and an id of another run decides nothing", async () => {
    runs.callOnce(runs.pay(1));
    const agentId = await runs.createAgent([runs.payTool()]);
    const first = await runs.start(agentId);
    const second = await runs.start(agentId);
    const [one] = await runs.pending(first.runId);
    const [other] = await runs.pending(second.runId);
    const changed = { decision: "approved", arguments: runs.pay(1_000).arguments, toolName: "other" };
    await harness.admin.post(`/workflows/approvals/${one?.approvalId}/decide`, changed);
    await runs.reach(first.path, "completed");
    expect(runs.paid()).to.deep.equal([1]);
    expect((await harness.admin.get(`/workflows/approvals/${other?.approvalId}`)).at("status")).to.equal("pending");
    await runs.decide(other?.approvalId ?? "", "rejected");
    await runs.reach(second.path, "completed");
    expect(runs.paid()).to.deep.equal([1]);
  });

  it("of the same kind: a model that fails after the effect does not have it made again, nor the decision asked for", async () => {
    let failures = 0;
    harness.upstream.play(({ turn }) => {
      if (turn === 1) return { calls: [runs.pay(1)] };
      failures += 1;
      return failures < 3 ? { status: 500 } : { text: "Done." };
    });
    const { runId, path } = await runs.start(await runs.createAgent([runs.payTool()]));
    const [approval] = await runs.pending(runId);
    await runs.decide(approval?.approvalId ?? "", "approved");
    const ended = await runs.reach(path, "completed", "failed");
    expect([ended.at("status"), runs.paid(), failures]).to.deep.equal(["completed", [1], 3]);
    await runs.pending(runId, 0);
  });

  it("of the same kind: an agent that was replaced or deleted meanwhile, by one that asks nobody, makes no rejected call", async () => {
    for (const change of ["PUT", "DELETE"]) {
      runs.callOnce(runs.pay(1));
      const agentId = await runs.createAgent([runs.payTool()]);
      const { runId, jobId } = await runs.start(agentId);
      const [approval] = await runs.pending(runId);
      const body = { name: "Payer", model: harness.model, systemPrompt: "You pay.", tools: [runs.payTool(null)] };
      const options = change === "PUT" ? { body } : {};
      expect((await harness.member.request(change, `/agents/${agentId}`, options)).status).to.be.lessThan(300);
      await runs.decide(approval?.approvalId ?? "", "rejected", "No.");
      const job = await pollUntil(async () => {
        const found = await harness.member.get(`/jobs/${jobId}`);
        return ["completed", "failed"].includes(found.string("status")) ? found : undefined;
      });
      expect(job.at("result.output"), job.text).to.contain("Their comment: No.");
    }
    expect(runs.effects).to.deep.equal([]);
  });

  /** The result of a call is lost after its effect, so that the call is made again. */
  for (const report of ["crewAI 5802: after a retry", "stripe/ai 402: after a worker that died before it knew"]) {
    it(`${report}, the call carries the key of the first attempt`, async () => {
      runs.callOnce(runs.pay(9));
      const { runId, path, jobId } = await runs.start(await runs.createAgent([runs.payTool()]));
      const [approval] = await runs.pending(runId);
      const { audit } = harness.platform.store;
      const { append } = audit;
      let isLost = true;
      audit.append = async (entry) => {
        if (isLost && entry.content.kind === "observation") {
          isLost = false;
          throw Object.assign(new Error("the worker is gone"), { name: "MongoNetworkError" });
        }
        return append(entry);
      };
      try {
        await runs.decide(approval?.approvalId ?? "", "approved");
        await runs.reach(path, "completed");
      } finally {
        audit.append = append;
      }
      expect(await harness.platform.store.jobs.findById(jobId)).to.include({ status: "completed" });
      expect(runs.effects.map(({ body }) => body)).to.deep.equal(['{"amount":9}', '{"amount":9}']);
      expect(new Set(runs.effects.map(({ key }) => key)).size, "the service pays once").to.equal(1);
      expect(harness.upstream.calls, "the model is not asked again").to.have.lengthOf(2);
    });
  }
});
