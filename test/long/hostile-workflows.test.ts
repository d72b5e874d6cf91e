import { expect } from "chai";
import { type HostileWorkflow, longText, manyLoops, slowRuns, slowSchemas } from "../support/hostile-workflows.ts";
import type { ApiClient, ApiResponse } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type HostProcess, startProcess } from "../support/processes.ts";
import { condition, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

/** How long what takes milliseconds may take here while others have the processor, in ms. A freeze lasts longer. */
const PROMPT_MS = 10_000;

describe("workflows written to exhaust the service", function () {
  this.timeout(120_000);
  let harness: WorkflowHarness;
  let worker: HostProcess;
  before(async () => {
    harness = await openWorkflowHarness({ workers: false });
    worker = await startProcess("workers/main.ts", harness.test.env);
    harness.model.play(() => ({ text: "ok" }));
  });
  after(async () => {
    await worker?.kill();
    await harness?.close();
  });

  const createFor = async (client: ApiClient, { steps, inputSchema }: HostileWorkflow) => {
    const made = await client.post("/workflows", { name: "Hostile", steps, ...(inputSchema ? { inputSchema } : {}) });
    expect(made.status, made.text.slice(0, 300)).to.equal(201);
    return made.string("workflowId");
  };
  const endOf = (client: ApiClient, workflowId: string, runId: string): Promise<ApiResponse> =>
    pollUntil(
      async () => {
        const run = await client.get(`/workflows/${workflowId}/runs/${runId}`);
        return ["completed", "failed"].includes(run.string("status")) ? run : undefined;
      },
      { timeoutMs: 60_000, what: "a run's end" },
    );
  /** The longest time that `call` took, made again and again until `work` is done. */
  const longestDuring = async (work: Promise<unknown>, call: () => Promise<unknown>) => {
    let isOver = false;
    const over = work.finally(() => {
      isOver = true;
    });
    let longest = 0;
    while (!isOver) {
      const beganAt = performance.now();
      await call();
      longest = Math.max(longest, performance.now() - beganAt);
    }
    await over;
    return longest;
  };
  /** Another tenant's workflow, from its submission to its end. */
  const runAsVictim = async (workflowId: string) => {
    const started = await harness.stranger.post(`/workflows/${workflowId}/execute`, { input: { n: 1 } });
    const run = await endOf(harness.stranger, workflowId, started.string("runId"));
    expect(run.at("status"), run.text).to.equal("completed");
  };
  const victims: HostileWorkflow = { steps: [condition("input.n + 1 == 2", [])] };

  it("fail, while those of another tenant continue", async () => {
    const own = await createFor(harness.stranger, victims);
    await runAsVictim(own);
    const hostile = { "a hundred loops in a text": manyLoops(100), "a long text": longText, ...slowRuns };
    for (const [name, workflow] of Object.entries(hostile)) {
      const workflowId = await createFor(harness.member, workflow);
      const runIds = await Promise.all([1, 2].map(() => harness.start(workflowId, workflow.input)));
      const ends = Promise.all(runIds.map((runId) => endOf(harness.member, workflowId, runId)));
      const longest = await longestDuring(ends, () => runAsVictim(own));
      expect(longest, name).to.be.lessThan(PROMPT_MS);
      for (const run of await ends) {
        expect([run.at("status"), run.at("error.code")], `${name} ${run.text.slice(-500)}`).to.deep.equal([
          "failed",
          "invalid_request",
        ]);
        expect(run.at("error.param"), name).to.match(/^steps\[0\]\.(prompt|systemPrompt|expression)$/);
        expect(run.at("error.message"), name).to.match(/takes longer than|more memory|characters|[Ii]nvalid/);
      }
    }
  });

  it("do not hold up the API by their input schemas", async () => {
    for (const [name, workflow] of Object.entries(slowSchemas)) {
      const workflowId = await createFor(harness.member, workflow);
      const execute = () => harness.member.post(`/workflows/${workflowId}/execute`, { input: workflow.input });
      const answers = Promise.all(Array.from({ length: 10 }, execute));
      const longest = await longestDuring(answers, () => harness.stranger.get("/healthz"));
      expect(longest, name).to.be.lessThan(PROMPT_MS);
      const ends = (await answers).map(({ status, text }) => `${status} ${text}`);
      // On a busy machine a check has no processor for its time, which says nothing about the schema.
      const ended = /^(400 .*takes (longer|more memory) than.*"param":"input"|503 .*the machine is too busy)/;
      expect(
        ends.some((end) => ended.test(end)),
        ends.join("\n"),
      ).to.equal(true);
      for (const end of ends) expect(ended.test(end) || /^429 .*too_many_concurrent/.test(end), end).to.equal(true);
    }
  });
});
