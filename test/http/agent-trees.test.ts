import { expect } from "chai";
import { type AgentHarness, openAgentHarness } from "../support/agent-harness.ts";
import type { AgentScript } from "../support/agent-upstream.ts";
import { pollUntil } from "../support/poll-until.ts";

/** What one tree of runs may have under way at a depth, and start at all. */
const AT_ONCE = 4;
const MOST = 200;
/** Calls of one answer. */
const CALLS = 5;

describe("agents that call agents", function () {
  this.timeout(120_000);
  let harness: AgentHarness;
  before(async () => {
    harness = await openAgentHarness();
  });
  after(() => harness.close());

  const makeAgent = async (tools: object[], fields: object = {}) => {
    const { member, model } = harness;
    return (await member.post("/agents", { name: "One", model, systemPrompt: "One.", tools, ...fields })).string(
      "agentId",
    );
  };
  const runOf = async (agentId: string) => {
    const answer = await harness.member.post(`/agents/${agentId}/run`, {
      input: "Go.",
      budget: { timeoutMs: 110_000 },
    });
    expect(answer.status, answer.text).to.equal(200);
    return harness.member.get(`/agents/${agentId}/runs/${answer.string("runId")}`);
  };
  const askAll = (name: string) => Array.from({ length: CALLS }, () => ({ name, arguments: { input: "Well?" } }));

  it("have four runs under way at each depth of a tree, however many they ask for", async () => {
    const inner = await makeAgent([]);
    const middle = await makeAgent([{ type: "agent", name: "leaf", config: { agentId: inner } }]);
    const outer = await makeAgent([{ type: "agent", name: "branch", config: { agentId: middle } }]);
    let atOnce = 0;
    let mostAtOnce = 0;
    let leaves = 0;
    let full: Promise<unknown> | undefined;
    const waitForMore = () =>
      pollUntil(() => mostAtOnce > AT_ONCE, { timeoutMs: 3_000, what: "too many" }).catch(() => undefined);
    const script: AgentScript = async ({ tools: [tool], turn }) => {
      if (tool === undefined) {
        atOnce += 1;
        leaves += 1;
        mostAtOnce = Math.max(mostAtOnce, atOnce);
        full ??= waitForMore();
        await full; // whoever may come beside the first ones has come by then
        atOnce -= 1;
      }
      const name = tool?.function.name;
      if (name === undefined || turn > 1) return { text: "Done." };
      return { calls: askAll(name) };
    };
    harness.upstream.play(script);
    const log = await runOf(outer);
    expect([log.at("status"), log.at("integrity.verified")]).to.deep.equal(["completed", true]);
    expect(leaves).to.equal(CALLS ** 2);
    expect(mostAtOnce).to.be.within(2, AT_ONCE);
  });

  it("start a limited number of runs of any kind in one tree, and read an error beyond it", async () => {
    const { member } = harness;
    const inner = await makeAgent([]);
    // biome-ignore lint/suspicious/noThenProperty: the interface names it so, and it is no function
    const steps = [{ type: "condition", expression: "true", then: [] }];
    const workflowId = (await member.post("/workflows", { name: "Flow", steps })).string("workflowId");
    const outer = await makeAgent([
      { type: "agent", name: "leaf", config: { agentId: inner } },
      { type: "workflow", name: "flow", config: { workflowId } },
      { type: "composite", name: "panel", config: { pattern: "chain-of-thought", profile: "content" } },
    ]);
    let leaves = 0;
    /** Counts as if the run had started all but two of what it may. */
    const startMost = async () => {
      const [runId, tenantId] = [
        (await member.get(`/agents/${outer}/runs`)).string("data[0].runId"),
        (await harness.platform.tenancy.authenticate(harness.key))?.tenantId ?? "",
      ];
      for (let n = 2; n < MOST; n += 1) await harness.platform.store.agentRuns.countStarted(tenantId, runId, MOST);
    };
    harness.upstream.play(async ({ tools, turn }) => {
      if (tools.length === 0) leaves += 1;
      if (tools.length === 0 || turn > 2) return { text: "Done." };
      if (turn === 1) await startMost();
      const names = turn === 1 ? ["leaf", "leaf", "leaf"] : ["leaf", "flow", "panel"];
      return { calls: names.map((name) => ({ name, arguments: { input: "Well?" } })) };
    });
    const log = await runOf(outer);
    expect(leaves).to.equal(2);
    const made = log.at("steps") as { actions: { observation: string; isError?: boolean }[] }[];
    const refused = made.flatMap(({ actions = [] }) => actions.filter(({ isError }) => isError));
    expect(refused).to.have.lengthOf(4);
    for (const { observation } of refused) expect(observation).to.contain(`started ${MOST} runs`);
  });
});
