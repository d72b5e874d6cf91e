import { expect } from "chai";
import { AppError } from "../../src/lib/errors.ts";
import type { Platform } from "../../src/platform.ts";
import { type AgentScript, type AgentUpstream, startAgentUpstream } from "../support/agent-upstream.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { outcomeOf, raceWorkers } from "../support/race-workers.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { startToolServer, type ToolServer } from "../support/tool-server.ts";
import { workContext } from "../support/work-context.ts";

const later = { headers: { prefer: "respond-async" } };
const model = "gpt-5.4-mini";
const LIMIT_USD = 50;

type Step = { action: string; logId: string; tokens: number; costUsd: number; idempotencyKey?: string };
type Check = (runId: string, where: string) => Promise<void>;
/** Where the other worker is frozen too, and up to which command the first one is. */
type Frozen = { otherAt: () => number; upTo: number };

/** No worker of the queue runs: the test runs the work of a run by hand, twice at once. */
describe("a run of an agent that two workers run at once", () => {
  let test: TestPlatform;
  let upstream: AgentUpstream;
  let site: ToolServer;
  let owner: ApiClient;
  let tenantId: string;
  let clerkId: string;
  let deskId: string;
  /** What the upstream has answered. */
  const given = { requests: 0, inputTokens: 0, outputTokens: 0 };
  /** The runs of all rounds, those of agents that were asked included. */
  const runs = new Set<string>();
  const platforms = new Set<Platform>();
  before(async () => {
    [upstream, site] = [await startAgentUpstream(), await startToolServer()];
    const env = {
      OPENAI_API_KEY: "sk-test",
      OPENAI_BASE_URL: upstream.url,
      PROVIDER_MAX_ATTEMPTS: "1",
      FETCH_ALLOW_ORIGINS: site.origin,
    };
    test = await startPlatform({ workers: false, env });
    owner = makeClient({ url: test.url, key: test.keys.owner });
    tenantId = await tenantOf(test);
    expect((await owner.request("PUT", "/budget", { body: { limitUsd: LIMIT_USD } })).status).to.equal(200);
    site.on("/order", (_, response) => void response.writeHead(200).end("ordered"));
    const agentOf = async (name: string, ...tools: object[]) =>
      (await owner.post("/agents", { name, model, systemPrompt: "You order.", tools })).string("agentId");
    const config = { allowedHosts: [site.host], methods: ["POST"] };
    clerkId = await agentOf("Clerk", { type: "http_request", config });
    deskId = await agentOf(
      "Desk",
      { type: "agent", name: "clerk", config: { agentId: clerkId } },
      { type: "calculator" },
    );
  });
  after(async () => {
    await test.close();
    await upstream.close();
    await site.close();
  });

  /** Plays a script, and counts what it answers: no two answers use the same. */
  const play = (script: AgentScript) =>
    upstream.play(async (call) => {
      given.requests += 1;
      const usage = { prompt_tokens: 100 + given.requests, completion_tokens: 7 };
      given.inputTokens += usage.prompt_tokens;
      given.outputTokens += usage.completion_tokens;
      return { ...(await script(call)), usage };
    });
  const playClerk = () =>
    play(({ turn }) => {
      if (turn > 1) return { text: "Ordered." };
      return { text: "I order.", calls: [{ name: "http_request", arguments: { url: `${site.origin}/order` } }] };
    });
  const playDesk = (...beside: { name: string; arguments: object }[]) =>
    play(({ turn, input }) => {
      if (input === "Order two.") return { text: "Ordered two." };
      if (turn > 1) return { text: "It is done." };
      return { text: "I ask.", calls: [...beside, { name: "clerk", arguments: { input: "Order two." } }] };
    });

  /** A run that has completed, and what it says of itself is what its trail says. */
  const readWhole = async (agentId: string, runId: string, actions: readonly string[], where: string) => {
    runs.add(runId);
    const run = await owner.get(`/agents/${agentId}/runs/${runId}`);
    const steps = run.at("steps") as Step[]; // the client has checked the schema
    const sumOf = (field: "tokens" | "costUsd") => steps.reduce((sum, step) => sum + step[field], 0);
    expect(run.at("status"), where).to.equal("completed");
    // A step each, and an observation of each call. A doubled entry would be a further one.
    const calls = actions.join(", ").split(", ").length - 1;
    expect(run.at("integrity"), where).to.include({ verified: true, entries: actions.length + calls });
    expect(
      steps.map(({ action }) => action),
      where,
    ).to.deep.equal(actions);
    expect(new Set(steps.map(({ logId }) => logId)).size, where).to.equal(actions.length);
    expect(run.at("tokensUsed"), where).to.equal(sumOf("tokens"));
    expect(run.at("costUsd"), where).to.be.closeTo(sumOf("costUsd"), 1e-9);
    const end = await test.platform.store.agentRuns.get(tenantId, runId);
    expect(end?.end?.steps, where).to.equal(actions.length);
    return run;
  };
  /** The ledger has each answer of the upstream once, nothing of the budget is set aside, and each run counts once. */
  const expectCharged = async (where: string) => {
    for (const { gateway } of platforms) await gateway.flush();
    const usage = await owner.get("/usage");
    const [leftUsd, costUsd] = [usage.at("budget.leftUsd"), usage.at("total.costUsd")].map(Number);
    expect(usage.at("total"), where).to.include({ ...given, errors: 0 });
    expect(usage.at("budget.reservedUsd"), where).to.equal(0);
    expect(usage.at("quotas.runs.used"), where).to.equal(runs.size);
    expect(LIMIT_USD - (leftUsd ?? 0), where).to.be.closeTo(costUsd ?? 0, 1e-9);
  };
  const race = (agentId: string, check: Check, frozenToo?: Frozen) =>
    raceWorkers({
      test,
      ...frozenToo,
      begin: async () => {
        site.requests.length = 0;
        const accepted = await owner.post(`/agents/${agentId}/run`, { input: "Order one." }, later);
        expect(accepted.status, accepted.text).to.equal(202);
        const ids = { recordId: accepted.string("runId"), jobId: accepted.string("jobId") };
        return { tenantId, ...ids, isLastAttempt: true };
      },
      work: (platform) => {
        platforms.add(platform);
        return platform.agents.work;
      },
      check: async ({ recordId }, { frozen, other, last }, at) => {
        const where = `frozen at ${at}, the other at ${frozenToo?.otherAt() ?? "none"}`;
        expect(["completed", "release"], where).to.include.members([outcomeOf(frozen), outcomeOf(other)]);
        expect(outcomeOf(last), where).to.equal("completed");
        await check(recordId, where);
        await expectCharged(where);
      },
    });
  const checkClerk: Check = async (runId, where) => {
    const run = await readWhole(clerkId, runId, ["http_request", "final_answer"], where);
    expect(run.at("finalOutput"), where).to.equal("Ordered.");
    // However often the order was sent, it was the same one.
    const sent = new Set(site.requests.map(({ headers }) => headers["idempotency-key"]));
    expect([...sent], where).to.deep.equal([run.at("steps[0].idempotencyKey")]);
  };
  const checkDesk: Check = async (runId, where) => {
    const run = await readWhole(deskId, runId, ["clerk", "final_answer"], where);
    const said = [run.at("finalOutput"), run.at("steps[0].observation")];
    expect(said, where).to.deep.equal(["It is done.", "Ordered two."]);
    await readWhole(clerkId, run.string("steps[0].runId"), ["final_answer"], where);
  };
  const checkBoth: Check = async (runId, where) => {
    const run = await readWhole(deskId, runId, ["calculator, clerk", "final_answer"], where);
    const observed = [0, 1].map((at) => run.at(`steps[0].actions[${at}].observation`));
    expect(observed, where).to.deep.equal(["2", "Ordered two."]);
    await readWhole(clerkId, run.string("steps[0].actions[1].runId"), ["final_answer"], where);
  };

  it("has one trail that holds, and one order, wherever one of them is frozen", async () => {
    playClerk();
    expect(await race(clerkId, checkClerk)).to.be.above(8);
  });

  it("has one run of the agent that it asks, wherever one of them is frozen", async () => {
    playDesk();
    expect(await race(deskId, checkDesk)).to.be.above(16);
  });

  it("has the answer of the agent that it asks, when the other is frozen at its end while the first goes on", async () => {
    playDesk();
    await race(deskId, checkDesk, { otherAt: () => 12, upTo: 13 });
  });

  it("has what was asked side by side, when the other is frozen between the two while the first goes on", async () => {
    playDesk({ name: "calculator", arguments: { expression: "1 + 1" } });
    await race(deskId, checkBoth, { otherAt: () => 8, upTo: 9 });
  });
});

describe("a run of an agent that fills the runs of its tenant", () => {
  it("resumes the run of the agent that it asks, where its first worker left it", async () => {
    const upstream = await startAgentUpstream();
    const env = { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: upstream.url, PROVIDER_MAX_ATTEMPTS: "1", MAX_RUNS: "2" };
    const test = await startPlatform({ workers: false, env });
    try {
      const owner = makeClient({ url: test.url, key: test.keys.owner });
      const agentOf = async (name: string, tools: object[]) =>
        (await owner.post("/agents", { name, model, systemPrompt: "You order.", tools })).string("agentId");
      const clerkId = await agentOf("Clerk", []);
      const deskId = await agentOf("Desk", [{ type: "agent", name: "clerk", config: { agentId: clerkId } }]);
      const accepted = await owner.post(`/agents/${deskId}/run`, { input: "Order one." }, later);
      const ids = { recordId: accepted.string("runId"), jobId: accepted.string("jobId") };
      const context = { tenantId: await tenantOf(test), ...ids };
      const lost = new AbortController();
      upstream.play(({ turn, input }) => {
        if (input === "Order two.") {
          lost.abort(new AppError("unavailable", "The job went to another worker.", { retryable: true }));
          return { text: "Ordered two." };
        }
        if (turn > 1) return { text: "It is done." };
        return { text: "I ask.", calls: [{ name: "clerk", arguments: { input: "Order two." } }] };
      });
      const { work } = test.platform.agents;
      const first = await work.run(workContext(test, { ...context, signal: lost.signal })).catch((error) => error);
      expect(first).to.include({ code: "unavailable" });
      await work.run(workContext(test, context));
      const run = await owner.get(`/agents/${deskId}/runs/${ids.recordId}`);
      expect(run.at("steps[0].observation")).to.equal("Ordered two.");
      expect(run.body).to.include({ status: "completed", finalOutput: "It is done." });
    } finally {
      await test.close();
      await upstream.close();
    }
  });
});
