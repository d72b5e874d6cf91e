import { setTimeout as delay } from "node:timers/promises";
import { expect } from "chai";
import { type AgentHarness, openAgentHarness } from "../support/agent-harness.ts";
import { makeApprovalRuns } from "../support/approval-run.ts";
import { pollUntil } from "../support/poll-until.ts";

/** What the model takes for an answer, and how many it gives: more than a worker's turn of ten seconds. */
const ANSWER_MS = 3_000;
const ANSWERS = 6;

describe("a run that is longer than a worker's turn", function () {
  this.timeout(90_000);
  let harness: AgentHarness;
  let runs: ReturnType<typeof makeApprovalRuns>;
  before(async () => {
    harness = await openAgentHarness();
    runs = makeApprovalRuns(harness);
    harness.upstream.play(async ({ turn }) => {
      await delay(ANSWER_MS);
      return turn < ANSWERS
        ? { text: `thought ${turn}`, calls: [{ name: "calculator", arguments: { expression: "1+1" } }] }
        : { text: "Done." };
    });
  });
  after(() => harness?.close());

  it("gives its worker back between two iterations, and its clock goes on", async () => {
    const agentId = await runs.createAgent([{ type: "calculator" }]);
    const [whole, short] = await Promise.all([
      runs.start(agentId),
      runs.start(agentId, { budget: { timeoutMs: ANSWER_MS * 5 - 500 } }),
    ]);
    const leases = new Map([whole, short].map(({ jobId }) => [jobId, new Set<string>()]));
    await pollUntil(
      async () => {
        const jobs = await Promise.all([...leases.keys()].map((id) => harness.platform.store.jobs.findById(id)));
        for (const job of jobs) if (job?.lease) leases.get(job._id)?.add(job.lease.token);
        return jobs.every((job) => job?.status === "completed");
      },
      { timeoutMs: 60_000, everyMs: 100, what: "the end of both runs" },
    );
    expect([...leases.values()].map(({ size }) => size)).to.deep.equal([2, 2]);
    const [ended, stopped] = await Promise.all([whole, short].map(({ path }) => harness.member.get(path)));
    expect(ended?.body).to.include({ status: "completed", finalOutput: "Done." });
    expect(stopped?.body).to.include({ status: "stopped", stopReason: "timeout", finalOutput: "thought 4" });
    for (const run of [ended, stopped]) expect(run?.at("integrity.verified")).to.equal(true);
    expect(harness.upstream.calls, "no answer is asked for twice").to.have.lengthOf(ANSWERS + 5);
    expect(await harness.platform.store.jobs.findById(whole.jobId)).to.include({ attempts: 1 });
  });
});
