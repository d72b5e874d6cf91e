import { expect } from "chai";
import type { AgentHarness } from "../support/agent-harness.ts";
import { type ApprovalRuns, useApprovalRuns } from "../support/approval-run.ts";
import { pollUntil } from "../support/poll-until.ts";

const tools = [{ type: "wait" }, { type: "wait_for_event" }];

describe("agents that wait", function () {
  this.timeout(120_000);
  let harness: AgentHarness;
  let runs: ApprovalRuns;
  let tenantId: string;
  useApprovalRuns((opened) => {
    ({ harness, runs } = opened);
  });
  before(async () => {
    const caller = (await harness.platform.tenancy.authenticate(harness.key)) ?? expect.fail("an unknown key");
    tenantId = caller.tenantId;
  });

  const wait = (given: object) => ({ name: "wait", arguments: given });
  const waitForEvent = (given: object) => ({ name: "wait_for_event", arguments: given });
  const recordOf = async (runId: string) =>
    (await harness.platform.store.agentRuns.get(tenantId, runId)) ?? expect.fail("no run");

  it("wait for a time, with neither lease nor queue, and their clock stands still meanwhile", async () => {
    runs.callOnce(wait({ ms: 3_000 }));
    const agentId = await runs.createAgent(tools);
    const { runId, jobId, path } = await runs.start(agentId, { budget: { timeoutMs: 2_500 } });
    const open = await runs.reach(path, "waiting");
    expect(open.at("awaiting[0]")).to.include({ kind: "time", runId });
    const job = await harness.platform.store.jobs.findById(jobId);
    expect(job).to.include({ status: "awaiting" }).and.not.to.have.any.keys("lease", "checkAt");
    const ended = await runs.reach(path, "completed", "stopped", "failed");
    expect(ended.at("status"), "although its time at work is 2.5 s").to.equal("completed");
    expect(ended.string("finalOutput")).to.contain("The time has come");
    const took = Date.parse(ended.string("finishedAt")) - Date.parse(ended.string("startedAt"));
    expect(took).to.be.greaterThan(2_900);
    expect((await recordOf(runId)).workedMs).to.be.lessThan(2_500);
    expect(harness.upstream.calls).to.have.lengthOf(2);
  });

  it("wait for an event that fits, and read what it says", async () => {
    runs.callOnce(waitForEvent({ name: "order.paid", match: { order: "7" }, timeoutMs: 60_000 }));
    const { runId, path } = await runs.start(await runs.createAgent(tools));
    const open = await runs.reach(path, "waiting");
    expect(open.at("awaiting[0]")).to.include({ kind: "event", event: "order.paid", runId });
    const deliver = (data: object) =>
      harness.platform.waits.deliverEvent({ tenantId, name: "order.paid", data, eventId: "evt_1" });
    expect(await deliver({ order: "8" })).to.equal(0);
    expect(await deliver({ order: "7", total: 12 })).to.equal(1);
    const ended = await runs.reach(path, "completed");
    expect(JSON.parse(ended.string("finalOutput"))).to.deep.equal({
      event: "order.paid",
      data: { order: "7", total: 12 },
    });
    expect(ended.at("integrity.verified")).to.equal(true);
  });

  it("read that an event did not come in time", async () => {
    runs.callOnce(waitForEvent({ name: "never", timeoutMs: 700 }));
    const ended = await runs.reach((await runs.start(await runs.createAgent(tools))).path, "completed");
    expect(ended.string("finalOutput")).to.contain("did not come within 700 ms");
  });

  it("wait in parallel with each other, and with calls that do not wait", async () => {
    harness.site.on(
      "/look",
      (_, response) => void response.writeHead(200, { "content-type": "text/plain" }).end("seen"),
    );
    const look = { name: "look", arguments: { url: `${harness.site.origin}/look` } };
    runs.callOnce(wait({ ms: 2_500 }), look, wait({ ms: 400 }));
    const { path } = await runs.start(await runs.createAgent([...tools, runs.payTool(null, "look")]));
    const ended = await runs.reach(path, "completed");
    const [a, b, c] = ended.at("steps[0].actions") as { finishedAt: string; observation: string }[];
    expect([
      b?.observation.includes("seen"),
      a?.observation.includes("come"),
      c?.observation.includes("come"),
    ]).to.deep.equal([true, true, true]);
    expect(Date.parse(b?.finishedAt ?? "")).to.be.lessThan(Date.parse(c?.finishedAt ?? ""));
    expect(Date.parse(c?.finishedAt ?? "")).to.be.lessThan(Date.parse(a?.finishedAt ?? ""));
    expect(harness.site.requests.filter((one) => one.path === "/look")).to.have.lengthOf(1);
    expect(harness.upstream.calls).to.have.lengthOf(2);
  });

  it("wait for an event by a number that a double rounds", async () => {
    const match = '{"name":"order.sent","match":{"order":9007199254740993},"timeoutMs":60000}';
    harness.upstream.play(({ turn }) =>
      turn === 1 ? { calls: [{ name: "wait_for_event", arguments: match }] } : { text: "Done." },
    );
    const { path } = await runs.start(await runs.createAgent(tools));
    await runs.reach(path, "waiting");
    for (const order of ["9007199254740992", "9007199254740993"]) {
      const raw = `{"data":{"order":${order}}}`;
      const headers = { "content-type": "application/json" };
      const accepted = await harness.member.request("POST", "/events/order.sent", { raw, headers });
      await pollUntil(async () => {
        const job = await harness.member.get(`/jobs/${accepted.string("jobId")}`);
        const woken = order.endsWith("3") ? 1 : 0;
        return job.at("status") === "completed" && expect(job.at("result.woken")).to.equal(woken);
      });
    }
    await runs.reach(path, "completed");
  });

  it("are cancelled while they wait, at once", async () => {
    runs.callOnce(wait({ ms: 60_000 }));
    const { jobId, path } = await runs.start(await runs.createAgent(tools));
    await runs.reach(path, "waiting");
    expect((await harness.member.post(`/jobs/${jobId}/cancel`)).status).to.equal(200);
    const ended = await runs.reach(path, "cancelled");
    expect(ended.at("awaiting")).to.equal(undefined);
  });

  it("are cancelled with the agents that they have called", async () => {
    const inner = await runs.createAgent(tools, { name: "Inner", systemPrompt: "the inner one" });
    const outer = await runs.createAgent([{ type: "agent", name: "ask", config: { agentId: inner } }]);
    harness.upstream.play(({ messages }) => ({
      calls: [
        messages[0]?.content?.includes("the inner one")
          ? wait({ ms: 60_000 })
          : { name: "ask", arguments: { input: "x" } },
      ],
    }));
    const { jobId, path, runId } = await runs.start(outer);
    const open = await runs.reach(path, "waiting");
    const innerId = open.string("awaiting[0].runId");
    expect((await recordOf(runId)).suspendedRuns).to.deep.equal([innerId]);
    expect((await recordOf(innerId)).updatedAt.getTime(), "no sweep looks at it meanwhile").to.be.greaterThan(
      Date.now(),
    );
    await harness.member.post(`/jobs/${jobId}/cancel`);
    await runs.reach(path, "cancelled");
    expect((await recordOf(innerId)).updatedAt.getTime(), "the next sweep ends it").to.be.at.most(Date.now());
  });

  it("refuse what no wait can be", async () => {
    const wrong = [
      [wait({}), "Give `until` or `ms`"],
      [wait({ ms: 1, until: "2026-01-01T00:00:00Z" }), "not both"],
      [wait({ ms: 31 * 86_400_000 }), "do not fit"],
      [wait({ until: new Date(Date.now() + 31 * 86_400_000).toISOString() }), "30 days"],
      [waitForEvent({ name: "x" }), "do not fit"],
    ] as const;
    for (const [call, problem] of wrong) {
      runs.callOnce(call);
      const ended = await runs.reach((await runs.start(await runs.createAgent(tools))).path, "completed");
      expect(ended.string("finalOutput"), JSON.stringify(call)).to.contain(problem);
    }
    runs.callOnce(wait({ until: "2020-01-01T00:00:00Z" }));
    const past = await runs.reach((await runs.start(await runs.createAgent(tools))).path, "completed");
    expect(past.string("finalOutput")).to.contain("The time has come");
  });

  it("send the model the same conversation, whether a wait has suspended the run or was too short for that", async () => {
    const sent: unknown[] = [];
    for (const ms of [1, 90]) {
      harness.upstream.play(({ turn, messages }) => {
        if (turn > 2) sent.push(messages);
        const calls = [wait({ ms }), { name: "wait", arguments: "{ broken" }];
        return turn > 2 ? { text: "Done." } : { text: "I wait.", calls };
      });
      const history = [
        { role: "user", content: "Before." },
        { role: "assistant", content: "Yes." },
      ];
      const { path } = await runs.start(await runs.createAgent(tools), { history });
      await runs.reach(path, "completed");
    }
    const [held, suspended] = sent.map((messages) => JSON.stringify(messages).replace(/it is \S+ now/g, "it is now"));
    expect(suspended?.replaceAll('\\"ms\\":90', '\\"ms\\":1')).to.equal(held);
    expect(held).to.contain("Before.").and.to.contain("are not a JSON object");
  });

  it("go on after a hundred waits as fast as at the first", async () => {
    const count = 100;
    harness.upstream.play(({ turn }) => (turn <= count ? { calls: [wait({ ms: 60 })] } : { text: "Done." }));
    const agentId = await runs.createAgent(tools, { maxIterations: count + 10 });
    const { path } = await runs.start(agentId);
    const ended = await pollUntil(
      async () => {
        const run = await harness.member.get(path);
        return ["completed", "stopped", "failed"].includes(run.string("status")) ? run : undefined;
      },
      { timeoutMs: 100_000, everyMs: 500, what: "the end of the waits" },
    );
    expect([ended.at("status"), (ended.at("steps") as object[]).length]).to.deep.equal(["completed", count + 1]);
    expect(harness.upstream.calls).to.have.lengthOf(count + 1);
    expect(ended.at("integrity.verified")).to.equal(true);
  });
});
