import { expect } from "chai";
import type { AgentHarness } from "../support/agent-harness.ts";
import type { AgentScript } from "../support/agent-upstream.ts";
import { type ApprovalRuns, useApprovalRuns } from "../support/approval-run.ts";
import type { ApiResponse } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";

/** What each call uses here, as its provider says, and what it costs with gpt-5.4-mini. */
const usage = { prompt_tokens: 5, completion_tokens: 1_000 };
const TOKENS = 1_005;
const ITEMS = 12;

describe("the budget of an agent's run, for what its tools start", function () {
  this.timeout(60_000);
  let harness: AgentHarness;
  let runs: ApprovalRuns;
  /** USD of a call. */
  let price = 0;
  /** Calls below the agent, by what was asked. */
  const asked: string[] = [];
  useApprovalRuns((opened) => {
    ({ harness, runs } = opened);
  });
  before(async () => {
    harness.upstream.play(() => ({ text: "Said.", usage }));
    price = Number((await outcome(await runs.createAgent([]))).at("costUsd"));
  });

  const createFlow = async (steps: object[]) => {
    const made = await harness.member.post("/workflows", { name: "Flow", steps });
    expect(made.status, made.text).to.equal(201);
    return made.string("workflowId");
  };
  const flow = (workflowId: string, name = "flow") => ({ type: "workflow", name, config: { workflowId } });
  const say = { type: "ai_completion", id: "say", model: "gpt-5.4-mini", prompt: "Say {{ item }}.", maxTokens: 1_000 };
  const loop = (step: object, concurrency = 1) => ({
    type: "for_each",
    id: "loop",
    items: `[${Array.from({ length: ITEMS }, (_, n) => n).join()}]`,
    concurrency,
    onError: "continue",
    do: [step],
  });
  /** Whoever has tools calls these at once, and then answers; all others answer. */
  const play = (...names: string[]) => {
    asked.length = 0;
    const script: AgentScript = ({ tools, messages, input }) => {
      if (tools.length === 0) asked.push(input);
      const isFirst = tools.length > 0 && !messages.some(({ role }) => role === "tool");
      return isFirst
        ? { calls: names.map((name) => ({ name, arguments: { input: "Go." } })), usage }
        : { text: "Said.", usage };
    };
    harness.upstream.play(script);
  };
  const outcome = async (agentId: string, budget?: object): Promise<ApiResponse> => {
    const { path } = await runs.start(agentId, budget ? { budget } : {});
    return runs.reach(path, "completed", "stopped", "failed");
  };
  /** All that the run has used is what the provider has counted, each call once. */
  const expectCounted = async (run: ApiResponse) => {
    const { length } = harness.upstream.calls;
    expect(run.at("tokensUsed"), "tokens, each call once").to.equal(length * TOKENS);
    expect(Number(run.at("costUsd"))).to.be.closeTo(length * price, 1e-9);
  };
  const observed = (run: ApiResponse) => {
    const step = run.at("steps[0]") as { observation: string; actions?: { observation: string }[] };
    return (step.actions ?? [step]).map(({ observation }) => observation);
  };

  // Runs of a list one after the other: of those beside the one that ends it, what they have used until then is not counted.
  const loops = (): Record<string, () => Promise<object>> => ({
    "a loop of model steps": async () => loop(say),
    "a loop with many items at once": async () => loop(say, 8),
    "a loop without a limit of its answers": async () => loop({ ...say, maxTokens: undefined }, 4),
    "another workflow": async () =>
      loop({ type: "workflow", workflowId: await createFlow([{ ...say, prompt: "Say it." }]) }),
    "a workflow in a workflow with a loop": async () => ({
      type: "workflow",
      workflowId: await createFlow([loop(say, 4)]),
    }),
    agents: async () =>
      loop({ type: "agent", agentId: await runs.createAgent([], { maxTokens: 1_000 }), input: "Go." }),
    patterns: async () => loop({ type: "composite", pattern: "chain-of-thought", profile: "content", input: "Why?" }),
    branches: async () => ({
      type: "parallel",
      branches: Object.fromEntries(
        Array.from({ length: ITEMS }, (_, n) => [`b${n}`, [{ ...say, id: `say${n}`, prompt: "Say." }]]),
      ),
    }),
  });
  /** The first call of the agent, three others, and half of one. */
  const budgets = [
    ["USD", () => ({ maxCostUsd: 4.5 * price })],
    ["tokens", () => ({ maxTokens: Math.floor(4.5 * TOKENS) })],
  ] as const;
  for (const name of Object.keys(loops())) {
    for (const [what, budget] of budgets) {
      it(`ends, in ${what}, a workflow with ${name} exactly there, with what was done`, async () => {
        const agentId = await runs.createAgent([flow(await createFlow([(await loops()[name]?.()) ?? {}]))]);
        play("flow");
        const run = await outcome(agentId, budget());
        expect(asked.length, `${run.text.slice(0, 2_000)}`).to.equal(3);
        expect(observed(run)[0]).to.match(/The run that has started this has .* left|The budget ended/);
        await expectCounted(run);
      });
    }
  }

  const panel = (pattern: string) => ({ type: "composite", name: "panel", config: { pattern, profile: "content" } });

  for (const [what, budget] of budgets) {
    it(`ends, in ${what}, a pattern before the member that would go beyond`, async () => {
      play("panel");
      const run = await outcome(await runs.createAgent([panel("debate")]), budget());
      expect(asked.length, "members that would all begin at once").to.be.within(2, 3);
      expect(observed(run)[0]).to.match(/The run that has started this has .* left/);
      expect(run.at("tokensUsed")).to.equal(harness.upstream.calls.length * TOKENS);
    });

    it(`is shared, in ${what}, by all calls of an answer: workflows, patterns and agents`, async () => {
      const workflowId = await createFlow([loop(say, 4)]);
      const helper = await runs.createAgent([], { maxTokens: 1_000 });
      const tools = [
        ...[flow(workflowId, "one"), flow(workflowId, "two"), panel("chain-of-thought")],
        ...["three", "four"].map((name) => ({ type: "agent", name, config: { agentId: helper } })),
      ];
      play("one", "two", "panel", "three", "four");
      const run = await outcome(await runs.createAgent(tools), budget());
      expect(asked).to.have.lengthOf(3);
      await expectCounted(run);
    });
  }

  it("is that of the run at whatever depth, also below an agent with a larger budget of its own", async () => {
    const deepest = await runs.createAgent([flow(await createFlow([loop(say, 2)]))]);
    const middle = await createFlow([{ type: "agent", agentId: deepest, input: "Go.", budget: { maxCostUsd: 1 } }]);
    const between = await runs.createAgent([flow(middle)]);
    const outer = await runs.createAgent([{ type: "agent", name: "flow", config: { agentId: between } }]);
    play("flow");
    const run = await outcome(outer, { maxCostUsd: 6.5 * price });
    expect(asked).to.have.lengthOf(3);
    expect(harness.upstream.calls, "and the three agents, of which the outermost answers").to.have.lengthOf(7);
    await expectCounted(run);
  });

  it("ends what an agent's step with a smaller budget of its own starts, and the list goes on", async () => {
    const helper = await runs.createAgent([flow(await createFlow([loop(say)]))]);
    const step = { type: "agent", agentId: helper, input: "Go.", budget: { maxCostUsd: 3.5 * price } };
    const list = { ...loop(step), items: "[1, 2]" };
    play("flow");
    const run = await outcome(await runs.createAgent([flow(await createFlow([list]))]), { maxCostUsd: 1 });
    expect(asked, "two of each").to.have.lengthOf(4);
    expect(JSON.parse(observed(run)[0] ?? "")).to.include({ status: "completed" });
    await expectCounted(run);
  });

  it("keeps its rest while what was started waits, and for the next calls of its agent", async () => {
    const ask = { type: "human_approval", id: "ok", assigneeRole: "admin" };
    const once = { ...say, id: "once", prompt: "Say it." };
    const workflowId = await createFlow([once, ask, loop(say)]);
    play("flow");
    const { path } = await runs.start(await runs.createAgent([flow(workflowId)]), {
      budget: { maxCostUsd: 4.5 * price },
    });
    const { approvalId } = await pollUntil(
      async () => (await harness.admin.get("/workflows/approvals")).at("data[0]") as { approvalId: string } | undefined,
    );
    expect(asked).to.have.lengthOf(1);
    await runs.decide(approvalId, "approved");
    const run = await runs.reach(path, "completed", "stopped", "failed");
    expect(asked).to.have.lengthOf(3);
    await expectCounted(run);

    const two = await createFlow([{ ...loop(say), items: "[1, 2]" }]);
    asked.length = 0;
    harness.upstream.play(({ tools, turn, input }) => {
      if (tools.length === 0) asked.push(input);
      return tools.length > 0 && turn < 4
        ? { calls: [{ name: "flow", arguments: { input: "Go." } }], usage }
        : { text: "Said.", usage };
    });
    const again = await outcome(await runs.createAgent([flow(two)]), { maxCostUsd: 6.5 * price });
    expect(asked, "two, after the second answer of the agent two, and then none is left").to.have.lengthOf(4);
    await expectCounted(again);
  });

  it("lets go within two seconds of a cancellation, also of what waits for its rest", async () => {
    const workflowId = await createFlow([loop({ ...say, maxTokens: undefined }, 4)]);
    const underway = Promise.withResolvers<void>();
    harness.upstream.play(async ({ tools, ended }) => {
      if (tools.length > 0) return { calls: [{ name: "flow", arguments: { input: "Go." } }], usage };
      underway.resolve();
      await ended;
      return {};
    });
    const { path, jobId } = await runs.start(await runs.createAgent([flow(workflowId)]), { budget: budgets[0][1]() });
    await underway.promise;
    const at = performance.now();
    await harness.member.post(`/jobs/${jobId}/cancel`);
    const children = async () =>
      (await harness.member.get(`/jobs?parentJobId=${jobId}`)).at("data") as { status: string }[];
    await pollUntil(async () => (await children()).every(({ status }) => status === "cancelled"));
    expect(performance.now() - at).to.be.below(2_000);
    await runs.reach(path, "cancelled");
    expect(harness.upstream.calls, "the agent, and the first item").to.have.lengthOf(2);
  });

  it("bounds the tokens of a model that costs nothing, and lets it go on when no money is left", async () => {
    const workflowId = await createFlow([{ type: "ai_completion", id: "free", model: "meta-llm", prompt: "Say it." }]);
    const agentId = await runs.createAgent([flow(workflowId)]);
    const cases: [object, RegExp][] = [
      [{ maxCostUsd: price }, /"status":"completed"/],
      [{ maxTokens: 2 * TOKENS }, /The run that has started this has 1005 tokens left/],
      [{ maxTokens: 3 * TOKENS }, /"status":"completed"/],
    ];
    for (const [budget, said] of cases) {
      play("flow");
      expect(observed(await outcome(agentId, budget))[0]).to.match(said);
    }
  });

  it("bounds nothing of a run without one", async () => {
    play("flow");
    const run = await outcome(await runs.createAgent([flow(await createFlow([loop(say, 4)]))]));
    expect(asked).to.have.lengthOf(ITEMS);
    await expectCounted(run);
  });
});
