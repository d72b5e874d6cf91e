import { expect } from "chai";
import { workflowStepsQueue as queue } from "../../src/jobs/queues.ts";
import { newId } from "../../src/lib/ids.ts";
import type { Decision, WorkflowApproval } from "../../src/store/approval-store.ts";
import type { JobState } from "../../src/store/job-state.ts";
import type { WorkflowRunEnd } from "../../src/store/workflow-run-store.ts";
import { pollUntil } from "../support/poll-until.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { takeTurn } from "../support/worker-turn.ts";
import { condition, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

const day = 86_400_000;

/** No worker runs: a run goes on when the test takes its turn, and nothing is swept unless the test asks. */
describe("an approval and its run, turn by turn", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  let tenantId: string;
  let workflowId: string;
  const longAgo = new Date(Date.now() - day);
  const ask = (fields: object = {}) => ({ type: "human_approval", id: "sign", assigneeRole: "admin", ...fields });
  before(async () => {
    harness = await openWorkflowHarness({ workers: false });
    tenantId = await tenantOf(harness.test);
    workflowId = await harness.create([ask(), condition("steps.sign.output.comment == null", [])]);
  });
  after(() => harness?.close());

  /** A turn of a job; where a busy machine reschedules the run's expressions, the one after. */
  const takeTurnOf = (jobId: string) =>
    pollUntil(
      async () => {
        const turn = await takeTurn(harness.test.platform, { queue, jobId });
        return turn.end === "later" ? null : turn;
      },
      { timeoutMs: 30_000, what: "the end of a turn" },
    );
  const approvalOf = async (approvalId: string) => {
    const approval = await harness.test.platform.store.approvals.get(tenantId, approvalId);
    return approval ?? expect.fail(`there is no approval ${approvalId}`);
  };
  /** A run that waits for a decision. */
  const waiting = async (ofWorkflow = workflowId, input?: unknown) => {
    const runId = await harness.start(ofWorkflow, input);
    const path = `/workflows/${ofWorkflow}/runs/${runId}`;
    const jobId = (await harness.member.get(path)).string("jobId");
    expect(await takeTurnOf(jobId)).to.deep.equal({ end: "done" });
    const run = await harness.member.get(path);
    return { runId, jobId, path, run, approvalId: run.string("awaiting.approvalId") };
  };
  /** Decides in the store alone, as a process that dies before the run has it. */
  const note = (approvalId: string, status: Decision["status"], at = longAgo) =>
    harness.test.platform.store.approvals.decide(tenantId, approvalId, { status, decidedBy: "x" }, at);
  const sweep = () => harness.test.platform.approvals.sweep();
  /** An approval without a run, whose time is over unless the fields say otherwise. */
  const insert = (fields: Partial<WorkflowApproval> = {}) =>
    harness.test.platform.store.approvals.ensure({
      kind: "workflow" as const,
      ...{ _id: newId("approval"), tenantId, workflowId, workflowName: "Desk", runId: newId("workflowRun") },
      ...{ stepId: "sign", path: "0", assigneeRole: "admin", status: "pending" },
      ...{ createdAt: longAgo, expiresAt: longAgo, ...fields },
    });

  it("is asked for once, and shows all that there is to decide on", async () => {
    const message = "{{ input }}";
    for (const [timeoutMs, status] of [
      [999, 400],
      [1_000, 201],
      [30 * day, 201],
      [30 * day + 1, 400],
    ] as const) {
      const made = await harness.member.post("/workflows", { name: "Desk", steps: [ask({ timeoutMs })] });
      expect(made.status, `${timeoutMs} ms`).to.equal(status);
    }
    const workflow = await harness.create([ask({ message, timeoutMs: day, assigneeRole: "owner" })]);
    const { approvalId, jobId, path, run } = await waiting(workflow, `${"x".repeat(19_999)}😀`);
    const shown = await harness.owner.get(`/workflows/approvals/${approvalId}`);
    const { createdAt, expiresAt, run: of, ...rest } = shown.body as Record<string, string>;
    expect(rest).to.deep.equal({
      ...{
        approvalId,
        kind: "workflow",
        workflowId: workflow,
        workflowName: "Desk",
        runId: run.at("runId"),
        stepId: "sign",
        startedBy: "member@test",
      },
      ...{ assigneeRole: "owner", message: `${"x".repeat(19_999)}\ufffd`, status: "pending", mayDecide: true },
    });
    expect(Date.parse(expiresAt ?? "") - Date.parse(createdAt ?? "")).to.equal(day);
    expect(of).to.deep.equal(run.body);
    expect(run.at("awaiting")).to.deep.equal({ approvalId, assigneeRole: "owner", expiresAt, pageUrl: "/approvals" });
    expect(run.at("steps")).to.deep.equal([
      { id: "sign", type: "human_approval", path: "0", status: "awaiting_approval", startedAt: createdAt, attempts: 1 },
    ]);
    await harness.test.platform.jobs.resume(jobId); // without a decision
    expect(await takeTurnOf(jobId)).to.deep.equal({ end: "done" });
    expect((await harness.member.get(path)).body).to.deep.equal(run.body);
  });

  it("says who may decide, and only while it is to be decided", async () => {
    const forAdmin = await insert({ expiresAt: new Date(Date.now() + day) });
    const forOwner = await insert({ expiresAt: new Date(Date.now() + day), assigneeRole: "owner" });
    const { runId } = await waiting();
    for (const { _id } of [forAdmin, forOwner]) {
      const missing = await harness.owner.get(`/workflows/approvals/${_id}`);
      expect([missing.status, missing.at("error.message")]).to.deep.equal([404, "There is no such run."]);
    }
    const cases = [
      [{}, "member", 403],
      [{}, "admin", 200],
      [{}, "owner", 200],
      [{ assigneeRole: "owner" }, "admin", 403],
      [{ assigneeRole: "owner" }, "owner", 200],
      [{ status: "approved" }, "owner", 409],
    ] as const;
    for (const [fields, role, status] of cases) {
      const { _id } = await insert({ runId, expiresAt: new Date(Date.now() + day), ...fields });
      const name = `${JSON.stringify(fields)} ${role}`;
      const path = `/workflows/approvals/${_id}`;
      expect((await harness[role].get(path)).at("mayDecide"), name).to.equal(status === 200);
      expect((await harness[role].post(`${path}/decide`, { decision: "rejected" })).status, name).to.equal(status);
    }
    const { _id } = await insert();
    const foreign = await harness.stranger.get(`/workflows/approvals/${_id}`);
    expect([foreign.status, foreign.at("error.message")]).to.deep.equal([404, "There is no such approval."]);
    expect((await harness.stranger.get("/workflows/approvals")).at("data")).to.deep.equal([]);
    expect((await approvalOf(_id)).status, "another tenant's list looks after its own").to.equal("pending");
    expect((await harness.member.get("/workflows/approvals")).text, "what is open").not.to.contain(_id);
    expect((await harness.member.get("/workflows/approvals?status=expired")).text).to.contain(_id);
  });

  it("resumes its run, or ends it, and the first decision stays", async () => {
    const { approvalId, jobId, path, run } = await waiting();
    const decide = (client: "admin" | "owner", body: object) =>
      harness[client].post(`/workflows/approvals/${approvalId}/decide`, body);
    const decided = await decide("admin", { decision: "approved", comment: "Fine \ud83d" });
    expect(decided.body).to.deep.include({
      approvalId,
      status: "approved",
      comment: "Fine \ufffd",
      runStatus: "running",
    });
    expect(await approvalOf(approvalId)).not.to.have.any.keys("unsettledSince", "message");
    const again = await decide("owner", { decision: "rejected" });
    expect([again.status, again.at("error.message")]).to.deep.equal([409, "It is approved already."]);
    expect(again.at("error.details")).to.deep.include({ approvalId, decidedBy: "admin@test", comment: "Fine \ufffd" });
    expect(await takeTurnOf(jobId)).to.deep.equal({ end: "done" });
    const ended = await harness.member.get(path);
    expect(ended.at("status")).to.equal("completed");
    expect(ended.at("steps[0]")).to.deep.include({ status: "completed", startedAt: run.at("steps[0].startedAt") });

    const other = await waiting();
    const rejected = await harness.owner.post(`/workflows/approvals/${other.approvalId}/decide`, {
      decision: "rejected",
    });
    expect(rejected.at("runStatus")).to.equal("rejected");
    expect(rejected.body).not.to.have.property("comment");
    const [step, ...more] = (await harness.member.get(other.path)).at("steps") as object[];
    expect(more).to.deep.equal([]);
    const decidedAt = rejected.string("decidedAt");
    expect(step).to.deep.equal({
      ...{ id: "sign", type: "human_approval", path: "0", status: "completed", attempts: 1 },
      ...{ startedAt: other.run.at("steps[0].startedAt"), finishedAt: decidedAt },
      output: { decision: "rejected", comment: null, decidedBy: "owner@test", decidedAt },
    });
    const job = await harness.member.get(`/jobs/${other.jobId}`);
    const { runId } = other;
    expect([job.at("status"), job.at("result")]).to.deep.equal([
      "completed",
      { runId, workflowId, status: "rejected", costUsd: 0 },
    ]);
    expect((await harness.member.get(other.path)).at("finishedAt")).to.equal(decidedAt);
  });

  it("is asked for by each step of its run for itself", async () => {
    const { approvalId, jobId, path } = await waiting(await harness.create([ask(), ask({ id: "again" })]));
    await harness.admin.post(`/workflows/approvals/${approvalId}/decide`, { decision: "approved" });
    expect(await takeTurnOf(jobId)).to.deep.equal({ end: "done" });
    const run = await harness.member.get(path);
    expect(run.at("steps[1]")).to.deep.include({ id: "again", status: "awaiting_approval" });
    expect(run.at("awaiting.approvalId")).not.to.equal(approvalId);
  });

  it("that is overdue expires when it is read, and its run with it, also when another expires it just then", async () => {
    const { runId, path } = await waiting();
    const { _id } = await insert({ runId });
    const refused = await harness.owner.post(`/workflows/approvals/${_id}/decide`, { decision: "approved" });
    expect([refused.status, refused.at("error.message")]).to.deep.equal([409, "The time to decide is over."]);
    const run = await harness.member.get(path);
    expect([run.at("status"), run.at("steps[0].output")]).to.deep.equal([
      "expired",
      { decision: "expired", comment: null, decidedBy: null, decidedAt: run.at("finishedAt") },
    ]);
    const { approvals } = harness.test.platform.store;
    const { decide } = approvals;
    approvals.decide = async (...args) => (await decide(...args)) && decide(...args); // the other's, and then ours
    try {
      const raced = await harness.owner.get(`/workflows/approvals/${(await insert({ runId }))._id}`);
      expect([raced.at("status"), raced.at("mayDecide")], raced.text).to.deep.equal(["expired", false]);
    } finally {
      approvals.decide = decide;
    }
  });

  describe("that was decided without its run", () => {
    type Case = {
      status: Decision["status"];
      /** The state of the run's job; gone: there is none. */
      job?: JobState | "gone";
      end?: WorkflowRunEnd["status"];
      /** The lease under which a sweep has seen the run's job; it is held under `held` now. */
      seen?: string;
      /** Paths of steps that are recorded. */
      steps?: string[];
      isSettled: boolean;
      run?: string | undefined;
      after?: JobState;
    };
    const cases: Record<string, Case> = {
      "resumes it": { status: "approved", isSettled: true, after: "queued" },
      "is left to a worker that has not read it": {
        status: "approved",
        job: "running",
        steps: ["1"],
        isSettled: false,
      },
      "is left to the worker that a sweep has seen": {
        status: "approved",
        job: "running",
        seen: "held",
        isSettled: false,
      },
      "was read by a worker since": { status: "approved", job: "running", seen: "earlier", isSettled: true },
      "has resumed it": { status: "approved", job: "queued", isSettled: true },
      "comes after its job's end": { status: "approved", job: "failed", isSettled: true },
      "comes after its job is forgotten": { status: "approved", job: "gone", isSettled: true },
      "does not wake what was cancelled": { status: "approved", end: "cancelled", isSettled: true },
      "ends it": { status: "rejected", steps: ["1"], isSettled: true, run: "rejected", after: "completed" },
      "ends it where that was begun": {
        status: "rejected",
        steps: ["0"],
        isSettled: true,
        run: "rejected",
        after: "completed",
      },
      "ends it as expired": { status: "expired", isSettled: true, run: "expired", after: "completed" },
      "ends it while a worker has its job": { status: "rejected", job: "running", isSettled: false, run: "rejected" },
      "ends it before a worker has its job": { status: "rejected", job: "queued", isSettled: true, run: "rejected" },
      "ends it after its job": { status: "rejected", job: "failed", isSettled: true, run: "rejected" },
      "ends it although its job is forgotten": { status: "rejected", job: "gone", isSettled: true, run: "rejected" },
      "ends its job alone": { status: "rejected", end: "rejected", steps: ["0"], isSettled: true, after: "completed" },
      "leaves it as it has failed": { status: "rejected", end: "failed", job: "running", isSettled: true },
      "is withdrawn with it": { status: "cancelled", end: "cancelled", job: "cancelled", isSettled: true },
    };
    for (const [
      name,
      { status, job = "awaiting", seen, end, steps = [], isSettled, run = end, after },
    ] of Object.entries(cases)) {
      it(`${name} (${status})`, async () => {
        const { jobs, workflowRuns } = harness.test.platform.store;
        const { approvalId, jobId, runId } = await waiting();
        const decision = { status, decidedBy: "x", ...(seen === undefined ? {} : { seenLease: seen }) };
        await harness.test.platform.store.approvals.decide(tenantId, approvalId, decision, longAgo);
        const lease = { lease: { workerId: "w", token: "held", expiresAt: new Date(Date.now() + day) } };
        const held = { status: job as JobState, ...(job === "running" ? lease : {}) };
        const change = job === "gone" ? { tenantId: newId("tenant"), status: "running" as const } : held;
        await jobs.change({ jobId, from: ["awaiting"] }, { $set: change });
        for (const [seq, path] of steps.entries())
          await workflowRuns.addStep({
            ...{
              _id: `${runId}:${path}`,
              tenantId,
              runId,
              seq,
              path,
              id: path,
              type: "condition",
              status: "completed",
            },
            ...{ startedAt: longAgo, finishedAt: longAgo, attempts: 1 },
          });
        if (end) await workflowRuns.finish(tenantId, runId, { status: end, finishedAt: longAgo });
        await sweep();
        const shown = await harness.member.get(`/workflows/approvals/${approvalId}`);
        expect([shown.at("status"), shown.at("mayDecide")]).to.deep.equal([status, false]);
        const { unsettledSince } = await approvalOf(approvalId);
        expect(unsettledSince === undefined, "settled").to.equal(isSettled);
        expect((await workflowRuns.get(tenantId, runId))?.end?.status).to.equal(run);
        expect((await jobs.findById(jobId))?.status).to.equal(after ?? (job === "gone" ? "running" : job));
        const recorded = (await workflowRuns.steps(tenantId, runId)).map((step) => step.path);
        expect(recorded).to.deep.equal(run === end ? steps : [...new Set([...steps, "0"])]);
      });
    }

    for (const status of ["approved", "rejected", "expired", "cancelled"] as const) {
      it(`is read by the worker that is about to let the run wait (${status})`, async () => {
        const { workflowRuns } = harness.test.platform.store;
        const { await: original } = workflowRuns;
        for (const isSweptBefore of [false, true]) {
          const runId = await harness.start(workflowId);
          const path = `/workflows/${workflowId}/runs/${runId}`;
          const jobId = (await harness.member.get(path)).string("jobId");
          workflowRuns.await = async (tenant, run, awaiting) => {
            await note(awaiting.approvalId, status);
            if (isSweptBefore) await sweep();
            return original(tenant, run, awaiting);
          };
          try {
            const turn = await takeTurn(harness.test.platform, { queue, jobId });
            expect(turn.end, JSON.stringify(turn)).to.equal("later");
          } finally {
            workflowRuns.await = original;
          }
          expect(await takeTurnOf(jobId)).to.deep.equal({ end: "done" });
          const run = await harness.member.get(path);
          expect(run.at("status")).to.equal(status === "approved" ? "completed" : status);
          const job = await harness.member.get(`/jobs/${jobId}`);
          if (status === "cancelled") expect(job.at("status")).to.equal("cancelled");
          else expect(run.at("steps[0].output")).to.include({ decision: status, decidedBy: "x" });
        }
      });
    }

    it("reaches it with the next sweep but for the first seconds, in which its own process does that", async () => {
      const { approvalId, jobId } = await waiting();
      await note(approvalId, "approved", new Date());
      await sweep();
      expect((await harness.test.platform.store.jobs.findById(jobId))?.status).to.equal("awaiting");
    });

    it("is one of any number that expire in one sweep", async () => {
      const many = await Promise.all(Array.from({ length: 101 }, () => insert()));
      const inTime = await insert({ expiresAt: new Date(Date.now() + day) });
      await sweep();
      const left = await Promise.all([...many, inTime].map(async ({ _id }) => (await approvalOf(_id)).status));
      expect(left).to.deep.equal([...many.map(() => "expired"), "pending"]);
    });
  });

  it("is decided in time, by its tenant, once; the longest overdue comes first", async () => {
    const { approvals } = harness.test.platform.store;
    const at = (ms: number) => new Date(longAgo.getTime() + ms);
    const ids = [await insert({ expiresAt: at(3) }), await insert({ expiresAt: at(1) })].map(({ _id }) => _id);
    const [later, first] = ids as [string, string];
    expect((await approvals.overdue(at(1), { limit: 9, tenantId })).map(({ _id }) => _id)).to.deep.equal([first]);
    const found = (await approvals.overdue(at(3), { limit: 1 })).map(({ _id }) => _id);
    expect(found).to.deep.equal([first]);
    for (const status of ["approved", "rejected"] as const) {
      expect(await approvals.decide(tenantId, later, { status }, at(3)), "at its end").to.equal(null);
      expect(await approvals.decide(newId("tenant"), later, { status }, at(2))).to.equal(null);
    }
    expect(await approvals.decide(tenantId, later, { status: "approved" }, at(2))).to.include({ status: "approved" });
    expect(await approvals.decide(tenantId, later, { status: "expired" }, at(4)), "once").to.equal(null);
    expect(await approvals.decide(tenantId, first, { status: "cancelled" }, at(0))).to.include({ status: "cancelled" });
    const unsettled = async (before: Date, limit: number) =>
      (await approvals.unsettled(before, limit)).map(({ _id }) => _id).filter((id) => ids.includes(id));
    expect(await unsettled(at(2), 1)).to.deep.equal([first]);
    expect(await unsettled(at(3), 1_000)).to.deep.equal([first, later]);
    await approvals.settle(newId("tenant"), first);
    expect(await unsettled(at(3), 1_000), "another tenant's").to.deep.equal([first, later]);
    await approvals.settle(tenantId, first);
    expect(await unsettled(at(3), 1_000)).to.deep.equal([later]);
  });
});
