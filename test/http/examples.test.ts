import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { root } from "../architecture/source-files.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const folder = join(root, "examples");
const example = async (name: string): Promise<object> => JSON.parse(await readFile(join(folder, name), "utf8"));

/** The tour of the README, with the offline model and the files of `examples/`. */
describe("the examples", function () {
  this.timeout(60_000);
  let test: TestPlatform;
  let admin: ApiClient;
  before(async () => {
    test = await startPlatform();
    admin = makeClient({ url: test.url, key: test.keys.admin });
    for (const name of await readdir(join(folder, "manuals"))) {
      const content = await readFile(join(folder, "manuals", name), "utf8");
      await admin.post("/rag/ingest", { content });
    }
  });
  after(() => test.close());

  it("find the passage on bleeding for the question that the tour asks", async () => {
    const found = await admin.post("/rag/query", { query: "When is the P-100 bled?", topK: 1 });
    expect(found.string("results[0].content")).to.match(/^### 4\.1 Filling and bleeding/);
  });

  it("have an agent that answers from the policy", async () => {
    const agentId = (await admin.post("/agents", await example("agent.json"))).string("agentId");
    const run = await admin.post(`/agents/${agentId}/run`, { input: "Which refunds need an approval?" });
    expect(run.string("output")).to.match(/^A refund above 100 EUR needs the approval of an administrator/);
    const fault = await admin.post(`/agents/${agentId}/run`, { input: "What does fault E04 mean?" });
    expect(fault.string("output")).to.equal("Fault E04 means that the pump runs dry.");
  });

  it("have a workflow whose approver reads a whole answer, and which ends when it is approved", async () => {
    const { gateway } = test.platform;
    const { complete } = gateway;
    const prompts: unknown[] = [];
    gateway.complete = (caller, request) => {
      prompts.push(request.messages.at(-1)?.content);
      return complete(caller, request);
    };
    const workflowId = (await admin.post("/workflows", await example("workflow.json"))).string("workflowId");
    const runId = (await admin.post(`/workflows/${workflowId}/execute`, await example("complaint.json"))).string(
      "runId",
    );
    const run = () => admin.get(`/workflows/${workflowId}/runs/${runId}`);
    await pollUntil(async () => (await run()).at("status") === "awaiting_approval");
    gateway.complete = complete;
    const [prompt] = prompts;
    expect(prompt, "the passages as text, each after an empty line").to.match(/^#.+\n\n###? .+\n\n###? /s);
    expect(prompt).to.not.include("\\n");
    const approvals = await admin.get("/workflows/approvals");
    expect(approvals.string("data[0].message")).to.equal(
      "A refund of 250 EUR is asked for. Send this answer?\n\n" +
        "A new pump may be louder than the old one for 48 hours, because the bearings run in and the last air leaves the " +
        "system. A pump that is still louder than the old one after 48 hours usually has air in the system or runs at too " +
        "great a head. When a pump is still louder than the old one after it was bled and 48 hours have passed, we send a " +
        "technician free of charge.",
    );
    const approvalId = approvals.string("data[0].approvalId");
    await admin.post(`/workflows/approvals/${approvalId}/decide`, { decision: "approved", comment: "Fine." });
    await pollUntil(async () => (await run()).at("status") === "completed");
  });
});
