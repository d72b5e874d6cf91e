import { expect } from "chai";
import { responsesQueue, workflowStepsQueue } from "../../src/jobs/queues.ts";
import { type Work, workOf } from "../../src/jobs/work.ts";
import type { Platform } from "../../src/platform.ts";
import { isFinal } from "../../src/store/job-state.ts";
import { pollUntil } from "../support/poll-until.ts";
import { raceWorkers } from "../support/race-workers.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { takeTurn } from "../support/worker-turn.ts";
import { chatModel, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

/** Each takes the job as a worker does, with a lease that ends while it is frozen; its heartbeats are frozen with it. */
describe("a job whose worker is frozen past its lease", () => {
  let harness: WorkflowHarness;
  let tenantId: string;
  before(async () => {
    harness = await openWorkflowHarness({ workers: false, env: { JOB_LEASE_MS: "200" } });
    tenantId = await tenantOf(harness.test);
  });
  after(() => harness?.close());

  const jobOf = async (jobId: string) =>
    (await harness.test.platform.store.jobs.findById(jobId)) ?? expect.fail("there is no such job");
  /** Hands a job to a worker again and again, until it has ended or waits for a person. */
  const drive = (platform: Platform, { queue, jobId }: { queue: Work["queue"]; jobId: string }) =>
    pollUntil(
      async () => {
        const { status, notBefore } = await jobOf(jobId);
        if (isFinal(status) || (status === "awaiting" && notBefore === undefined)) return status;
        await takeTurn(platform, { queue, jobId });
        return null;
      },
      { what: "the end of the job" },
    );
  /** What raced workers run instead of the work itself: the whole turn of its job. */
  const shellOf = (queue: Work["queue"], idField: string) => (platform: Platform) => {
    const work =
      workOf(platform.works, { queue: queue.name, payload: { [idField]: "" } }) ?? expect.fail("no such work");
    const isFrozen = platform === harness.test.platform;
    const run = ({ jobId }: { jobId: string }) => (isFrozen ? takeTurn : drive)(platform, { queue, jobId });
    return { ...work, run };
  };
  /** The job is as after an attempt that was not disturbed: none has failed, none is taken to have ended its process. */
  const expectUnharmed = async (jobId: string, status: string, at: number) => {
    const { failures, attempts, overtaken = 0, ...job } = await jobOf(jobId);
    expect(job.status, `frozen at ${at}`).to.equal(status);
    expect(failures, `frozen at ${at}`).to.equal(0);
    if (!isFinal(job.status)) expect(attempts - overtaken, `frozen at ${at}, attempts that are lost`).to.equal(0);
  };

  it("waits for a person, as its run does, and resumes by the decision", async () => {
    const workflowId = await harness.create([
      { type: "ai_completion", model: chatModel, prompt: "Draft" },
      { type: "human_approval", assigneeRole: "admin" },
    ]);
    const commands = await raceWorkers({
      test: harness.test,
      begin: async () => {
        const recordId = await harness.start(workflowId);
        const path = `/workflows/${workflowId}/runs/${recordId}`;
        return { tenantId, recordId, path, jobId: (await harness.member.get(path)).string("jobId") };
      },
      work: shellOf(workflowStepsQueue, "runId"),
      check: async ({ jobId, path }, _ends, at) => {
        await drive(harness.test.platform, { queue: workflowStepsQueue, jobId });
        await expectUnharmed(jobId, "awaiting", at);
        const waiting = await harness.member.get(path);
        expect(waiting.at("status"), `frozen at ${at}`).to.equal("awaiting_approval");
        const approval = `/workflows/approvals/${waiting.string("awaiting.approvalId")}`;
        expect((await harness.admin.post(`${approval}/decide`, { decision: "approved" })).status).to.equal(200);
        await drive(harness.test.platform, { queue: workflowStepsQueue, jobId });
        await expectUnharmed(jobId, "completed", at);
        expect((await harness.member.get(path)).at("status")).to.equal("completed");
      },
    });
    expect(commands).to.be.above(8);
  });

  it("is completed with its response", async () => {
    const commands = await raceWorkers({
      test: harness.test,
      begin: async () => {
        const body = { model: chatModel, input: "What does a lease protect?", background: true };
        const recordId = (await harness.member.post("/v1/responses", body)).string("id");
        const record = await harness.test.platform.store.responses.get(tenantId, recordId);
        return { tenantId, recordId, jobId: String(Object(record).jobId) };
      },
      work: shellOf(responsesQueue, "responseId"),
      check: async ({ recordId, jobId }, _ends, at) => {
        await drive(harness.test.platform, { queue: responsesQueue, jobId });
        await expectUnharmed(jobId, "completed", at);
        expect((await harness.member.get(`/v1/responses/${recordId}`)).at("status")).to.equal("completed");
      },
    });
    expect(commands).to.be.above(4);
  });
});
