import { expect } from "chai";
import { AppError, toErrorView } from "../../src/lib/errors.ts";
import type { WorkflowRunRecord } from "../../src/store/workflow-run-store.ts";
import type { WorkflowStepRecord } from "../../src/store/workflow-step-store.ts";
import { readRun } from "../../src/workflows/run-view.ts";
import { makeJob } from "../support/make-job.ts";

const at = new Date(0);
const error = toErrorView(new AppError("source_refused", "It is refused."));
const open: WorkflowRunRecord = {
  _id: "run_1",
  tenantId: "ten_1",
  workflowId: "wf_1",
  version: 1,
  name: "hook",
  definition: "{}",
  caller: { subject: "ops", role: "member", keyId: "key_1" },
  jobId: "job_1",
  createdAt: at,
  updatedAt: at,
};
const failed: WorkflowRunRecord = { ...open, end: { status: "failed", error, finishedAt: at } };
const step: WorkflowStepRecord = {
  _id: "run_1:0",
  tenantId: "ten_1",
  runId: "run_1",
  seq: 0,
  path: "0",
  id: "hook",
  type: "webhook",
  status: "failed",
  startedAt: at,
  finishedAt: at,
  attempts: 1,
  error,
};

describe("the view of a workflow's run", () => {
  it("shows the step that failed also when the run ends while it is read", async () => {
    let hasEnded = false;
    const find = async () => {
      await Promise.resolve(); // the steps are read meanwhile
      hasEnded = true;
      return makeJob({ _id: "job_1", status: "failed", error });
    };
    const steps = async () => (hasEnded ? [step] : []);
    const workflowRuns = { get: async () => failed, steps, shownOpen: async () => [] };
    const deps = { jobs: { find }, store: { workflowRuns } } as unknown as Parameters<typeof readRun>[0]; // all that it uses
    const view = await readRun(deps, open);
    expect(view.status).to.equal("failed");
    expect(view.steps.map(({ error }) => error?.code)).to.deep.equal(["source_refused"]);
  });
});
