import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { Suspended } from "../../src/jobs/reschedule.ts";
import { type AgentUpstream, startAgentUpstream } from "../support/agent-upstream.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { outcomeOf, raceWorkers } from "../support/race-workers.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { workContext } from "../support/work-context.ts";

/** Takes up a run that was suspended once what it waits for is over, as the shell of the workers does. */
async function untilEnd(run: () => Promise<unknown>): Promise<unknown> {
  for (;;) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof Suspended)) throw error;
      await pollUntil(() => error.isOver(), { what: "the end of the job" });
    }
  }
}

const later = { headers: { prefer: "respond-async" } };
const model = "gpt-5.4-mini";

/** No worker of the queues runs: the test runs the work of a run by hand, twice at once, and the jobs of its tools once. */
describe("a tool call of an agent that begins a job, made by two workers at once", () => {
  let upstream: AgentUpstream;
  let test: TestPlatform;
  let owner: ApiClient;
  let tenantId: string;
  let isOver = false;
  let working: Promise<void>;
  before(async () => {
    upstream = await startAgentUpstream();
    const env = { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: upstream.url, PROVIDER_MAX_ATTEMPTS: "1" };
    test = await startPlatform({ workers: false, env });
    owner = makeClient({ url: test.url, key: test.keys.owner });
    tenantId = await tenantOf(test);
    working = runJobsOfTools();
  });
  after(async () => {
    isOver = true;
    await working;
    await test.close();
    await upstream.close();
  });

  const runJobsOfTools = async () => {
    const { jobs, composite, workflows, store } = test.platform;
    while (!isOver) {
      const page = { before: new Date(Date.now() + 60_000), limit: 10 };
      const open = [...(await store.executions.unfinished(page)), ...(await store.workflowRuns.unfinished(page))];
      for (const { jobId } of open) {
        const claimed = await jobs.claims.claim(jobId, "hand");
        if (!claimed) continue;
        const { payload, progress } = claimed.record;
        const { work } = payload.executionId === undefined ? workflows : composite;
        const recordId = String(payload[work.idField]);
        const result = await work.run(workContext(test, { tenantId, jobId, recordId }));
        await jobs.claims.complete(claimed.lease, result, progress);
      }
      await delay(5);
    }
  };
  const race = async (tool: object, { call, observed }: { call: object; observed: string }) => {
    const body = { name: "Desk", model, systemPrompt: "You ask.", tools: [{ name: "helper", ...tool }] };
    const agentId = (await owner.post("/agents", body)).string("agentId");
    upstream.play(({ turn, input }) => {
      if (input !== "Order one.") return { text: "Ordered two." };
      return turn > 1 ? { text: "It is done." } : { text: "I ask.", calls: [{ name: "helper", arguments: call }] };
    });
    const used = Number((await owner.get("/usage")).at("quotas.runs.used"));
    let rounds = 0;
    await raceWorkers({
      test,
      // The other has begun the job by then, and has not read its end.
      otherAt: () => 8,
      upTo: 11,
      begin: async () => {
        rounds += 1;
        const accepted = await owner.post(`/agents/${agentId}/run`, { input: "Order one." }, later);
        expect(accepted.status, accepted.text).to.equal(202);
        return { tenantId, recordId: accepted.string("runId"), jobId: accepted.string("jobId") };
      },
      work: ({ agents: { work } }) => ({ ...work, run: (context) => untilEnd(() => work.run(context)) }),
      check: async ({ recordId }, { last }, at) => {
        const where = `frozen at ${at}`;
        const run = await owner.get(`/agents/${agentId}/runs/${recordId}`);
        expect(outcomeOf(last), where).to.equal("completed");
        expect(run.at("integrity"), where).to.include({ verified: true, entries: 3 });
        expect(run.string("steps[0].observation"), where).to.contain(observed);
        expect((await owner.get("/usage")).at("quotas.runs.used"), where).to.equal(used + 2 * rounds);
      },
    });
  };

  it("observes the answer of a composite pattern that was asked once", async () => {
    const config = { pattern: "chain-of-thought", profile: "coding" };
    await race({ type: "composite", config }, { call: { input: "Order two." }, observed: "Ordered two." });
  });

  it("observes the output of a workflow that was run once", async () => {
    const steps = [{ type: "rag_query", query: "Pumps" }];
    const workflowId = (await owner.post("/workflows", { name: "Pumps", steps })).string("workflowId");
    const observed = '"status":"completed"';
    await race({ type: "workflow", config: { workflowId } }, { call: { input: {} }, observed });
  });
});
