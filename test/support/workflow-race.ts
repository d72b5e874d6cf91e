import { expect } from "chai";
import type { WorkContext } from "../../src/jobs/work.ts";
import type { Platform } from "../../src/platform.ts";
import type { ApiResponse } from "./http-client.ts";
import { pollUntil } from "./poll-until.ts";
import { outcomeOf } from "./race-workers.ts";
import { tenantOf } from "./tenant-of.ts";
import { workContext } from "./work-context.ts";
import { chatModel, openWorkflowHarness, stepsOf } from "./workflow-harness.ts";

/** A run that no worker takes. `path`: where it is read. */
export type BegunRun = Pick<WorkContext, "tenantId" | "recordId" | "jobId" | "isLastAttempt"> & { path: string };

/** Makes a run larger than what every run counts at least. */
const filler = "-".repeat(5_000);
/** Turns that a run needs at most after a race. */
const MAX_TURNS = 5;

export type WorkflowRace = Awaited<ReturnType<typeof openWorkflowRace>>;

/** A platform without workers, whose runs of workflows a test runs by hand, and what holds of them after a race. */
export async function openWorkflowRace() {
  const harness = await openWorkflowHarness({ workers: false });
  const tenantId = await tenantOf(harness.test);
  let round = 0;
  harness.site.on("/effect", (_, response) => void response.writeHead(204).end());
  harness.model.play(({ input }) => ({
    text: `${input}, answer ${harness.model.calls.length}${input.startsWith("Review") ? filler : ""}`,
  }));

  const work = (platform: Platform) => platform.workflows.work;
  const ask = (id: string, prompt: string) => ({ type: "ai_completion", id, model: chatModel, prompt });
  const call = (path: string, said: string) => ({
    ...{ type: "webhook", id: "call", url: `${harness.site.origin}${path}`, method: "POST" },
    ...{ body: { run: "{{ run.runId }}", said: `{{ ${said} }}` }, retry: { attempts: 8, backoffMs: 0 } },
  });
  /** Starts runs of a workflow, which no worker takes. A failure would be the end of them, as in the last attempt of their jobs. */
  const starter = async (steps: object[]) => {
    const workflowId = await harness.create(steps);
    return async (): Promise<BegunRun> => {
      round += 1;
      const recordId = await harness.start(workflowId, { word: `word ${round}` });
      const path = `/workflows/${workflowId}/runs/${recordId}`;
      const jobId = (await harness.member.get(path)).string("jobId");
      return { tenantId, recordId, jobId, path, isLastAttempt: true };
    };
  };
  /** One turn of a run by a single worker: its result, or what it throws. */
  const takeTurn = (begun: BegunRun, platform = harness.test.platform) =>
    work(platform)
      .run(workContext({ platform }, begun))
      .catch((error: unknown) => error);
  /** Lets a single worker go on with a run until it ends, or waits for a person; what that says. */
  const goOn = async (begun: BegunRun) => {
    for (let turn = 0; turn < MAX_TURNS; turn += 1) {
      const end = await takeTurn(begun);
      if (outcomeOf(end) !== "release") return end;
    }
    return expect.fail(`the run needs more than ${MAX_TURNS} turns`);
  };
  /** A worker of a race whose run was taken by the other gives it back; it does not count as a failure of the job. */
  const expectPeace = (ends: object, at: number) => {
    for (const [name, end] of Object.entries(ends))
      expect(["completed", "suspend", "release"], `${name}, frozen at ${at}: ${end}`).to.include(outcomeOf(end));
  };
  const expectOnce = (run: ApiResponse, paths: readonly string[], at: number) => {
    const found = stepsOf(run).map((step) => `${step.path} ${step.status} ${step.attempts}`);
    expect(found, `frozen at ${at}`).to.deep.equal(paths.map((path) => `${path} completed 1`));
  };
  /** Every answer that the model has given is charged, and none twice. */
  const expectCharged = async () => {
    const used = async () => {
      await harness.test.platform.gateway.flush();
      return Number((await harness.owner.get("/usage")).at("total.requests"));
    };
    await pollUntil(async () => (await used()) >= harness.model.calls.length, {
      what: "the charge of the last answer",
    });
    expect(await used()).to.equal(harness.model.calls.length);
  };
  /** A receiver that fails this many times for each run. */
  const failing = (times: number) => {
    harness.site.on(`/fails-${times}`, ({ body }, response) => {
      const { run } = JSON.parse(body);
      response.writeHead(deliveriesOf({ recordId: run }).length > times ? 204 : 503).end();
    });
    return `/fails-${times}`;
  };
  const deliveriesOf = ({ recordId }: Pick<BegunRun, "recordId">) =>
    harness.site.requests.filter(({ body }) => JSON.parse(body).run === recordId);
  return {
    harness,
    tenantId,
    /** The number of the latest run. */
    round: () => round,
    work,
    ask,
    call,
    starter,
    takeTurn,
    goOn,
    expectPeace,
    expectOnce,
    expectCharged,
    failing,
    deliveriesOf,
  };
}
