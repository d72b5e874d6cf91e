import { expect } from "chai";
import { type AgentHarness, openAgentHarness } from "../support/agent-harness.ts";
import type { AgentScript, AgentUpstream } from "../support/agent-upstream.ts";
import type { ApiClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import type { ToolServer } from "../support/tool-server.ts";

describe("limits of an agent's run", function () {
  this.timeout(30_000);
  let harness: AgentHarness;
  let upstream: AgentUpstream;
  let site: ToolServer;
  let member: ApiClient;
  let model: string;
  before(async () => {
    harness = await openAgentHarness();
    ({ upstream, site, member, model } = harness);
  });
  after(() => harness.close());

  const makeAgent = async (fields: object = {}) => {
    const tools = [{ type: "calculator" }, { type: "http_request", config: { allowedHosts: [site.host] } }];
    const made = { name: "Clerk", model, systemPrompt: "You keep the desk.", tools, ...fields };
    return (await member.post("/agents", made)).string("agentId");
  };
  const run = async (script: AgentScript, body: object = {}, fields: object = {}) => {
    upstream.play(script);
    const agentId = await makeAgent(fields);
    const answer = await member.post(`/agents/${agentId}/run`, { input: "Count on.", ...body });
    const auditLog =
      answer.status === 200 ? await member.get(`/agents/${agentId}/runs/${answer.string("runId")}`) : answer;
    return { answer, auditLog, agentId };
  };
  /** Counts for ever, and says each time how far it is. */
  const endless: AgentScript = ({ turn }) => ({
    text: `I am at ${turn}.`,
    calls: [{ name: "calculator", arguments: { expression: `${turn} + 1` } }],
    usage: { prompt_tokens: 100, completion_tokens: 100 },
  });

  for (const { what, body, fields, reason, calls } of [
    { what: "iterations", fields: { maxIterations: 3 }, reason: "max_iterations", calls: 3 },
    { what: "tokens", body: { budget: { maxTokens: 450 } }, reason: "max_tokens", calls: 2 },
    // 100 tokens in and 100 out of this model cost 0.000525 USD.
    { what: "USD", body: { budget: { maxCostUsd: 0.0011 } }, reason: "max_cost", calls: 3 },
  ] as { what: string; body?: object; fields?: object; reason: string; calls: number }[]) {
    it(`stop it when its ${what} are used up, with the best answer so far`, async () => {
      const { answer, auditLog } = await run(endless, body, fields);
      expect([answer.status, answer.at("status"), answer.at("stopReason")]).to.deep.equal([200, "stopped", reason]);
      expect(upstream.calls.length).to.be.within(calls - 1, calls);
      expect(answer.at("output")).to.equal(`I am at ${upstream.calls.length}.`);
      expect([auditLog.at("status"), auditLog.at("stopReason"), auditLog.at("integrity.verified")]).to.deep.equal([
        "stopped",
        reason,
        true,
      ]);
      expect(auditLog.at("tokensUsed")).to.equal(upstream.calls.length * 200);
      const job = await member.get(`/jobs/${auditLog.string("jobId")}`);
      expect(job.at("status"), "an answer all the same").to.equal("completed");
    });
  }

  it("stop it when its time is over, in the middle of a tool that hangs", async () => {
    site.on("/hangs", () => undefined);
    site.requests.length = 0;
    const { answer, auditLog } = await run(
      () => ({ text: "I look.", calls: [{ name: "http_request", arguments: { url: `${site.origin}/hangs` } }] }),
      { budget: { timeoutMs: 500 } },
    );
    expect([answer.at("status"), answer.at("stopReason"), answer.at("output")]).to.deep.equal([
      "stopped",
      "timeout",
      "I look.",
    ]);
    expect(await site.requests[0]?.ended, "the tool's request is given up too").to.equal("left");
    expect(auditLog.at("integrity.verified")).to.equal(true);
  });

  it("stop it when its time is over while the model thinks", async () => {
    const held = Promise.withResolvers<{ text: string }>();
    const { answer } = await run(() => held.promise, { budget: { timeoutMs: 300 } });
    held.resolve({ text: "too late" });
    expect([answer.at("status"), answer.at("stopReason"), answer.at("output")]).to.deep.equal([
      "stopped",
      "timeout",
      "",
    ]);
  });

  it("never let a model write more tokens than are left", async () => {
    await run(({ turn }) => (turn === 1 ? endless({ turn } as never) : { text: "Done." }), {
      budget: { maxTokens: 5_000 },
    });
    const [first, second] = upstream.calls.map(({ maxTokens }) => maxTokens ?? Number.POSITIVE_INFINITY);
    expect(first).to.be.below(5_000);
    expect(second).to.be.at.most((first ?? 0) - 200);
  });

  it("fail it when the provider fails for good, and keep the steps recorded until then", async () => {
    const { answer, agentId } = await run(({ turn }) =>
      turn === 1 ? { text: "One.", calls: [{ name: "calculator", arguments: { expression: "1" } }] } : { status: 400 },
    );
    expect(answer.status).to.be.within(400, 502);
    const runs = await member.get(`/agents/${agentId}/runs`);
    expect([runs.at("data[0].status"), runs.at("data[0].steps")]).to.deep.equal(["failed", 1]);
    const auditLog = await member.get(`/agents/${agentId}/runs/${runs.string("data[0].runId")}`);
    expect([auditLog.at("integrity.verified"), auditLog.at("steps[0].observation")]).to.deep.equal([true, "1"]);
  });

  it("refuse an invalid run, naming the field", async () => {
    const agentId = await makeAgent();
    for (const [body, param] of [
      [{}, "input"],
      [{ input: "  " }, "input"],
      [{ input: "x", budget: { maxTokens: 0 } }, "budget.maxTokens"],
      [{ input: "x", budget: { timeoutMs: 30 * 86_400_000 + 1 } }, "budget.timeoutMs"],
      [{ input: "x", sessionId: "x".repeat(257) }, "sessionId"],
      [{ input: "x", context: { long: "y".repeat(40_000) } }, "context"],
    ] as const) {
      const refused = await member.post(`/agents/${agentId}/run`, body);
      expect([refused.status, refused.at("error.param")], JSON.stringify(body).slice(0, 80)).to.deep.equal([
        400,
        param,
      ]);
    }
  });

  describe("and its session, events and records", () => {
    it("takes any text as the name of a session, and finds its runs by it", async () => {
      upstream.play(() => ({ text: "Fine." }));
      const agentId = await makeAgent();
      for (const sessionId of ["YWJj+/8=", "  ", "", "Grüße an Ångström", "s".repeat(256)]) {
        const run = await member.post(`/agents/${agentId}/run`, { input: "x", sessionId });
        expect(run.status, `${sessionId}: ${run.text}`).to.equal(200);
        const found = await member.get(`/agents/${agentId}/runs?${new URLSearchParams({ sessionId })}`);
        expect(found.at("data[0].runId"), sessionId).to.equal(run.at("runId"));
        expect(found.at("data[1]"), sessionId).to.equal(undefined);
      }
    });

    it("gives a run the earlier turns of its own session only", async () => {
      const script: AgentScript = ({ input }) => ({ text: `You said: ${input}` });
      upstream.play(script);
      const agentId = await makeAgent();
      const say = (input: string, sessionId?: string) =>
        member.post(`/agents/${agentId}/run`, { input, ...(sessionId === undefined ? {} : { sessionId }) });
      await say("My name is Ada.", "desk-1");
      await say("My name is Bob.", "desk-2");
      await say("Nobody's turn.");
      await say("Who am I?", "desk-1");
      const said = upstream.calls.at(-1)?.messages.filter(({ role }) => role !== "system");
      expect(said?.map(({ role, content }) => [role, content])).to.deep.equal([
        ["user", "My name is Ada."],
        ["assistant", "You said: My name is Ada."],
        ["user", "Who am I?"],
      ]);
      const runs = await member.get(`/agents/${agentId}/runs?sessionId=desk-1`);
      expect(runs.at("data")).to.have.lengthOf(2);
    });

    it("sends followers each step while it runs, without its texts", async () => {
      const held = Promise.withResolvers<void>();
      upstream.play(async ({ turn }) => {
        if (turn === 1)
          return { text: "secret thought", calls: [{ name: "calculator", arguments: { expression: "1" } }] };
        await held.promise;
        return { text: "secret answer" };
      });
      const agentId = await makeAgent();
      const later = { headers: { prefer: "respond-async" } };
      const accepted = await member.post(`/agents/${agentId}/run`, { input: "Go." }, later);
      const { events } = await member.events("GET", `/jobs/${accepted.string("jobId")}/events`);
      const steps: unknown[] = [];
      let all = "";
      for await (const { event, data } of events) {
        all += JSON.stringify(data);
        if (event !== "step") continue;
        const { event: kind, index, action } = data as Record<string, unknown>;
        steps.push([kind, index, action]);
        if (kind === "observation") held.resolve(); // it was sent before the run had ended
      }
      expect(steps).to.deep.equal([
        ["intention", 1, "calculator"],
        ["observation", 1, "calculator"],
        ["answer", 2, undefined],
      ]);
      expect(all).not.to.contain("secret thought");
    });

    it("keeps an agent's runs readable after it is changed or deleted", async () => {
      const { agentId, answer } = await run(() => ({ text: "Here." }));
      await member.request("PUT", `/agents/${agentId}`, { body: { name: "New", model, systemPrompt: "Changed." } });
      const again = await member.post(`/agents/${agentId}/run`, { input: "Once more." });
      expect([answer.at("agentVersion"), again.at("agentVersion")]).to.deep.equal([1, 2]);
      expect((await member.delete(`/agents/${agentId}`)).status).to.equal(204);
      const runs = await member.get(`/agents/${agentId}/runs`);
      expect(runs.at("data")).to.have.lengthOf(2);
      const auditLog = await member.get(`/agents/${agentId}/runs/${answer.string("runId")}`);
      expect([auditLog.at("agentName"), auditLog.at("integrity.verified")]).to.deep.equal(["Clerk", true]);
      expect((await member.post(`/agents/${agentId}/run`, { input: "x" })).status).to.equal(404);
    });

    it("runs once under an idempotency key", async () => {
      upstream.play(() => ({ text: "Once." }));
      const agentId = await makeAgent();
      const once = { headers: { "idempotency-key": "run-once-1" } };
      const first = await member.post(`/agents/${agentId}/run`, { input: "Go." }, once);
      const second = await member.post(`/agents/${agentId}/run`, { input: "Go." }, once);
      expect(second.at("runId")).to.equal(first.at("runId"));
      expect(upstream.calls).to.have.lengthOf(1);
      await pollUntil(async () => (await member.get(`/agents/${agentId}/runs`)).at("data[0].status") === "completed");
    });
  });
});
