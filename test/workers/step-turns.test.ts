import { expect } from "chai";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";
import { tenantOf } from "../support/tenant-of.ts";
import { workContext } from "../support/work-context.ts";

/** No worker runs here: the jobs are run by hand, so that their turns can be counted, or do not come. */
describe("the results of a run's steps", () => {
  let test: TestPlatform;
  let client: ApiClient;
  before(async () => {
    test = await startPlatform({ workers: false });
    client = makeClient({ url: test.url, key: test.keys.member });
  });
  after(() => test.close());

  const begin = async (count: number) => {
    // biome-ignore lint/suspicious/noThenProperty: the interface names it so, and it is no function
    const steps = Array.from({ length: count }, () => ({ type: "condition", expression: "true", then: [] }));
    const workflowId = (await client.post("/workflows", { name: "Steps", steps })).string("workflowId");
    const headers = { prefer: "respond-async" };
    const accepted = await client.post(`/workflows/${workflowId}/execute`, { input: {} }, { headers });
    const [runId, jobId] = [accepted.string("runId"), accepted.string("jobId")];
    return { path: `/workflows/${workflowId}/runs/${runId}`, given: { recordId: runId, jobId } };
  };

  it("are each recorded in a turn, between which others have theirs", async () => {
    const { path, given } = await begin(5);
    let turns = 0;
    const share = <T>(part: () => Promise<T>) => {
      turns += 1;
      return part();
    };
    await test.platform.workflows.work.run(workContext(test, { tenantId: await tenantOf(test), ...given, share }));
    expect(turns).to.equal(5);
    expect((await client.get(path)).at("status")).to.equal("completed");
  });

  it("are each recorded in a turn where they are calls of a composite", async () => {
    const asked = { pattern: "critique", profile: "coding", input: "Is it right?" };
    const accepted = await client.post("/composite/execute", asked, { headers: { prefer: "respond-async" } });
    const [recordId, jobId] = [accepted.string("executionId"), accepted.string("jobId")];
    let turns = 0;
    const share = <T>(part: () => Promise<T>) => {
      turns += 1;
      return part();
    };
    const given = { tenantId: await tenantOf(test), recordId, jobId, share };
    const result = await test.platform.composite.work.run(workContext(test, given));
    expect(turns).to.be.above(1).and.to.equal(Object(result).stepsExecuted);
  });

  it("are recorded, too, where the run is stopped before its turn comes", async () => {
    const { path, given } = await begin(2);
    const stopped = new AbortController();
    const share = () => {
      stopped.abort(new Error("The worker stops."));
      return Promise.reject(stopped.signal.reason);
    };
    const context = workContext(test, { tenantId: await tenantOf(test), ...given, share, signal: stopped.signal });
    const error = await test.platform.workflows.work.run(context).catch((thrown: unknown) => thrown);
    expect(error).to.have.property("message", "The worker stops.");
    expect((await client.get(path)).at("steps")).to.have.lengthOf(1);
  });
});
