import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { root } from "../architecture/source-files.ts";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const folder = join(root, "examples");
const example = async (name: string): Promise<object> => JSON.parse(await readFile(join(folder, name), "utf8"));

/** With the offline models and the manuals of `examples/`. */
describe("the example of", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let admin: ApiClient;
  before(async () => {
    test = await startPlatform();
    admin = makeClient({ url: test.url, key: test.keys.admin });
    for (const name of await readdir(join(folder, "manuals")))
      await admin.post("/rag/ingest", { content: await readFile(join(folder, "manuals", name), "utf8") });
  });
  after(() => test.close());

  const create = async (name: string) => (await admin.post("/workflows", await example(name))).string("workflowId");
  const ended = (path: string): Promise<ApiResponse> =>
    pollUntil(async () => {
      const run = await admin.get(path);
      return ["completed", "failed", "rejected"].includes(run.string("status")) ? run : undefined;
    });
  const start = async (workflowId: string, input: object) => {
    const started = await admin.post(`/workflows/${workflowId}/execute`, { input });
    expect(started.status, started.text).to.equal(202);
    return `/workflows/${workflowId}/runs/${started.string("runId")}`;
  };

  it("complaints has an agent's draft sent once a person has agreed", async () => {
    await admin.post("/agents", { ...(await example("agent.json")), name: "Service desk" });
    const path = await start(await create("complaints.json"), { complaint: "The pump is loud.", amount: 250 });
    const approvalId = await pollUntil(async () => (await admin.get("/workflows/approvals")).at("data[0].approvalId"));
    await admin.post(`/workflows/approvals/${approvalId}/decide`, { decision: "approved" });
    const run = await ended(path);
    expect(run.at("status"), run.text).to.equal("completed");
    expect(run.string("output.text")).to.have.length.above(10);
    expect(run.at("steps[0].child.kind")).to.equal("agent");
  });

  it("a nightly digest is started by a schedule, and has a paragraph for each topic, in order", async () => {
    const workflowId = await create("digest.json");
    const topics = ["refunds", "bleeding the pump", "fault E04"];
    const schedule = { name: "Night", cron: "0 3 * * *", target: { workflowId }, input: { topics } };
    const made = await admin.post("/schedules", schedule);
    expect(made.status, made.text).to.equal(201);
    await admin.post(`/schedules/${made.string("scheduleId")}/run`);
    const runId = await pollUntil(async () => (await admin.get(`/workflows/${workflowId}/runs`)).at("data[0].runId"));
    const run = await ended(`/workflows/${workflowId}/runs/${runId}`);
    expect(run.at("status"), run.text).to.equal("completed");
    const paragraphs = run.at("output.paragraphs") as { topic: string }[];
    expect(paragraphs.map(({ topic }) => topic)).to.deep.equal(topics);
    expect(run.at("output.failed")).to.equal(0);
  });

  it("triage looks in two ways at once, and goes on when the desk has taken the ticket", async () => {
    const path = await start(await create("triage.json"), { ticket: "T-7", message: "The pump leaks, help!" });
    await pollUntil(async () => (await admin.get(path)).at("steps[3].status") === "waiting");
    await admin.post("/events/ticket.taken", { data: { ticket: "T-8", by: "somebody else" } });
    await admin.post("/events/ticket.taken", { data: { ticket: "T-7", by: "Ana" } });
    const run = await ended(path);
    expect(run.at("status"), run.text).to.equal("completed");
    expect(run.at("output")).to.include({ ticket: "T-7", takenBy: "Ana", passages: 3 });
  });
});
