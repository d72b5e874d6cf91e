import { expect } from "chai";
import type { AgentHarness } from "../support/agent-harness.ts";
import type { AgentScript } from "../support/agent-upstream.ts";
import { type ApprovalRuns, useApprovalRuns } from "../support/approval-run.ts";
import { pollUntil } from "../support/poll-until.ts";

type ListedJob = {
  jobId: string;
  kind: string;
  status: string;
  about: { runId: string };
  parentJobId?: string;
  parentStep?: { id: string; path: string };
};
/** How soon a cancel must have reached all of a tree, in ms. */
const CANCEL_MS = 2_000;
const panel = { pattern: "chain-of-thought", profile: "content" };

describe("the jobs that an agent's tools start", function () {
  this.timeout(60_000);
  let harness: AgentHarness;
  let runs: ApprovalRuns;
  useApprovalRuns((opened) => {
    ({ harness, runs } = opened);
  });

  const createFlow = async (steps: object[]) => {
    const made = await harness.member.post("/workflows", { name: "Flow", steps });
    expect(made.status, made.text).to.equal(201);
    return made.string("workflowId");
  };
  const flow = (workflowId: string, name = "flow") => ({ type: "workflow", name, config: { workflowId } });
  const ask = { type: "human_approval", id: "ok", assigneeRole: "admin" };
  const completion = { type: "ai_completion", id: "say", model: "gpt-5.4-mini", prompt: "Say it." };
  const used = { usage: { prompt_tokens: 20, completion_tokens: 10 } };
  const call = (name: string) => ({ name, arguments: { input: "Well?" } });
  /** Calls these at once; whatever has no tools answers at once. */
  const callAtOnce =
    (...names: string[]): AgentScript =>
    ({ tools, messages }) => {
      const observed = messages.flatMap(({ role, content }) => (role === "tool" ? [content] : []));
      if (tools.length === 0 || observed.length > 0) return { text: observed.join(" | ") || "Said.", ...used };
      return { calls: names.map(call), ...used };
    };
  const children = async (jobId: string) =>
    (await harness.member.get(`/jobs?parentJobId=${jobId}`)).at("data") as ListedJob[]; // the client has checked its schema
  const childrenOnce = (jobId: string, areThere: (found: ListedJob[]) => boolean) =>
    pollUntil(
      async () => {
        const found = await children(jobId);
        return areThere(found) ? found : undefined;
      },
      { timeoutMs: 20_000, what: "children" },
    );
  const approve = async (decision: "approved" | "rejected") => {
    const { approvalId } = await pollUntil(
      async () => (await harness.admin.get("/workflows/approvals")).at("data[0]") as { approvalId: string } | undefined,
    );
    await runs.decide(approvalId, decision);
  };

  it("are children of its job, for which its run is suspended, and count once", async () => {
    const workflowId = await createFlow([completion, ask]);
    harness.upstream.play(callAtOnce("flow", "panel"));
    const agentId = await runs.createAgent([flow(workflowId), { type: "composite", name: "panel", config: panel }]);
    const { jobId, runId, path } = await runs.start(agentId);
    const found = await childrenOnce(
      jobId,
      (all) =>
        all.length === 2 &&
        all.every(({ kind, status }) => status === (kind === "workflow" ? "awaiting" : "completed")),
    );
    expect(found.map(({ parentStep }) => parentStep?.id).toSorted()).to.deep.equal(["flow", "panel"]);
    const [ofFlow] = found.filter(({ kind }) => kind === "workflow");
    const open = await pollUntil(async () => {
      const run = await runs.reach(path, "waiting");
      return (run.at("awaiting") as object[]).length === 1 ? run : undefined; // the other has ended meanwhile
    });
    expect(open.at("awaiting")).to.deep.equal([{ kind: "job", runId, jobId: ofFlow?.jobId, toolName: "flow" }]);
    const job = await harness.platform.store.jobs.findById(jobId);
    expect(job).to.include({ status: "awaiting" }).and.not.to.have.any.keys("lease", "checkAt");
    await approve("approved");
    const ended = await runs.reach(path, "completed", "failed", "stopped");
    const actions = ended.at("steps[0].actions") as {
      action: string;
      jobId: string;
      observation: string;
      isError?: true;
    }[];
    for (const { jobId: made } of actions) expect(found.map((one) => one.jobId)).to.include(made);
    expect(actions.map(({ isError }) => isError)).to.deep.equal([undefined, undefined]);
    expect(JSON.parse(actions[0]?.observation ?? "")).to.include({ status: "completed" });
    const calls = harness.upstream.calls.length;
    expect(ended.at("tokensUsed"), "each call of a model once").to.equal(calls * 30);
    expect(ended.at("integrity.verified")).to.equal(true);
  });

  it("give what became of them to the model: rejected, failed, or cancelled", async () => {
    const [asking, failing, waiting] = await Promise.all([
      createFlow([ask]),
      createFlow([{ ...completion, prompt: "{{ input.none }}" }]),
      createFlow([{ type: "wait", event: "never" }]),
    ]);
    harness.upstream.play(callAtOnce("asking", "failing", "waiting"));
    const tools = [flow(asking, "asking"), flow(failing, "failing"), flow(waiting, "waiting")];
    const { jobId, path } = await runs.start(await runs.createAgent(tools));
    const found = await childrenOnce(jobId, (all) => all.filter(({ status }) => status === "awaiting").length === 2);
    const waits = found.find(({ parentStep }) => parentStep?.id === "waiting") ?? expect.fail("no child waits");
    expect((await harness.member.post(`/jobs/${waits.jobId}/cancel`)).status).to.equal(200);
    await approve("rejected");
    const ended = await runs.reach(path, "completed", "failed", "stopped");
    const [rejected, failed, cancelled] = ended.at("steps[0].actions") as {
      jobId: string;
      observation: string;
      isError?: true;
    }[];
    expect(JSON.parse(rejected?.observation ?? "")).to.include({ status: "rejected" });
    expect(failed?.observation).to.contain("input.none has no value");
    expect(failed?.jobId).to.match(/^job_/);
    expect([cancelled?.isError, cancelled?.jobId]).to.deep.equal([true, waits.jobId]);
  });

  it("count with what they have used, although they were cancelled", async () => {
    let answered = 0;
    harness.upstream.play(async (asked) => {
      if (asked.tools.length === 0) answered += 1;
      if (answered === 2 && asked.tools.length === 0) await asked.ended; // the second call of the pattern
      return callAtOnce("panel")(asked);
    });
    const agentId = await runs.createAgent([{ type: "composite", name: "panel", config: panel }]);
    const { jobId, path } = await runs.start(agentId);
    const [child] = await childrenOnce(jobId, ([one]) => one !== undefined && answered === 2);
    await harness.member.post(`/jobs/${child?.jobId}/cancel`);
    const ended = await runs.reach(path, "completed", "failed", "stopped");
    expect(ended.at("steps[0].isError"), ended.text).to.equal(true);
    expect(ended.at("tokensUsed"), "two calls of the agent, and the first one of the pattern").to.equal(90);
  });

  it("end with its run at every depth, within two seconds of its cancellation", async () => {
    const deepest = await createFlow([
      { type: "parallel", branches: { a: [ask], b: [{ type: "wait", event: "never" }] } },
    ]);
    const between = await createFlow([{ type: "workflow", workflowId: deepest }]);
    const inner = await runs.createAgent([flow(between)]);
    const outer = await runs.createAgent([{ type: "agent", name: "helper", config: { agentId: inner } }]);
    const middle = await createFlow([{ type: "agent", agentId: outer, input: "Go." }]);
    const first = await runs.createAgent([flow(middle)]);
    harness.upstream.play((asked) => callAtOnce(asked.tools[0]?.function.name ?? "")(asked));
    const { jobId } = await runs.start(first);
    /** The job under the first, and the only one under that, and so on. */
    const line = async () => {
      const jobs: ListedJob[] = [];
      for (let under = jobId; ; ) {
        const [next] = await children(under);
        if (!next) return jobs;
        jobs.push(next);
        under = next.jobId;
      }
    };
    await pollUntil(async () => (await line()).length === 4 && (await line()).at(-1)?.status === "awaiting", {
      timeoutMs: 20_000,
      what: "four jobs inside of each other",
    });
    await pollUntil(
      async () => ((await harness.admin.get("/workflows/approvals")).at("data") as object[]).length === 1,
    );
    expect((await line()).map(({ kind }) => kind)).to.deep.equal(["workflow", "agent", "workflow", "workflow"]);
    const at = performance.now();
    await harness.member.post(`/jobs/${jobId}/cancel`);
    await pollUntil(async () => (await line()).every(({ status }) => status === "cancelled"));
    await pollUntil(
      async () => ((await harness.admin.get("/workflows/approvals")).at("data") as object[]).length === 0,
    );
    expect(performance.now() - at).to.be.below(CANCEL_MS);
  });

  it("are run although as many agents wait for theirs as a worker runs at once", async () => {
    const inner = await runs.createAgent([]);
    const workflowId = await createFlow([{ type: "agent", agentId: inner, input: "Go." }]);
    const outer = await runs.createAgent([flow(workflowId)]);
    harness.upstream.play(callAtOnce("flow"));
    const begun = await Promise.all(Array.from({ length: 20 }, () => runs.start(outer)));
    for (const { path } of begun) await runs.reach(path, "completed");
  });
});
