import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { root } from "../architecture/source-files.ts";
import { type ApiClient, makeClient, valueAt } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const folder = join(root, "examples");
const example = async (name: string): Promise<object> => JSON.parse(await readFile(join(folder, name), "utf8"));

/** The blocks of the README's tour that show what its commands print, in order. */
async function shownOutputs(): Promise<string[]> {
  const [, tour = ""] = (await readFile(join(root, "README.md"), "utf8")).split(/^## Ten-minute tour$/m);
  return [...tour.matchAll(/^```sh\n[^`]+^```\n```\w*\n([^`]+)^```$/gm)].map(([, shown = ""]) => shown);
}
const shownLines = (shown = "") => shown.trim().split("\n");
/** A shown text up to where it is cut. */
const uncut = (text: string) => text.split("…")[0]?.trimEnd() ?? "";

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

  it("print what the README shows, from the first answer to the costs", async () => {
    const [, asked, chat, agent, approval, decided, usage, ...more] = await shownOutputs();
    expect(usage, "the sixth block of output").to.be.a("string");
    expect(more).to.deep.equal([]);
    const tenantId = await test.platform.tenancy.ensureTenant("tour");
    const { key } = await test.platform.tenancy.createKey({ tenantId, role: "owner", subject: "bootstrap" });
    const owner = makeClient({ url: test.url, key });
    for (const name of await readdir(join(folder, "manuals"))) {
      const form = new FormData();
      form.set("file", new File([await readFile(join(folder, "manuals", name))], name));
      await owner.request("POST", "/rag/ingest", { raw: form });
    }

    const shown = JSON.parse(asked ?? "");
    const found = await owner.post("/rag/answer", { query: "When is the P-100 bled?" });
    expect(found.string("answer").startsWith(uncut(shown.answer)), found.text).to.equal(true);
    const { title, heading, quote } = shown.citation;
    expect(found.at("citations[0]")).to.include({ title, heading });
    expect(found.string("citations[0].quote").startsWith(uncut(quote))).to.equal(true);

    const shownChat = JSON.parse(chat ?? "");
    const said = await owner.post("/ai/chat", { messages: [{ role: "user", content: "What are you?" }] });
    expect(said.body).to.include({ model: shownChat.model, costUsd: shownChat.costUsd });
    expect(said.string("text").startsWith(uncut(shownChat.text))).to.equal(true);

    const shownRun = JSON.parse(agent ?? "");
    const agentId = (await owner.post("/agents", await example("agent.json"))).string("agentId");
    const run = await owner.post(`/agents/${agentId}/run`, { input: "Which refunds need an approval?" });
    expect(run.at("steps")).to.equal(shownRun.steps);
    expect(run.string("output").startsWith(uncut(shownRun.output))).to.equal(true);

    const workflowId = (await owner.post("/workflows", await example("workflow.json"))).string("workflowId");
    const job = await owner.post(`/workflows/${workflowId}/execute`, await example("complaint.json"));
    let open = await owner.get("/workflows/approvals");
    await pollUntil(async () => {
      open = await owner.get("/workflows/approvals");
      return open.at("data[0]") !== undefined;
    });
    expect(open.string("data[0].message").startsWith(uncut(JSON.parse(approval ?? "").message))).to.equal(true);
    const [shownDecision = "", ...shownEvents] = shownLines(decided);
    const decision = { decision: "approved", comment: "Fine." };
    const { body } = await owner.post(`/workflows/approvals/${open.string("data[0].approvalId")}/decide`, decision);
    expect(body).to.include(JSON.parse(shownDecision));
    const lines: string[] = [];
    const { events } = await owner.events("GET", `/jobs/${job.string("jobId")}/events`);
    for await (const { event, data } of events) {
      if (event === "progress") continue; // which the README's command leaves out too
      lines.push(`${valueAt(data, "id") ?? "run"}: ${valueAt(data, "status") ?? valueAt(data, "event")}`);
    }
    expect(lines).to.deep.equal(shownEvents);

    const shownCosts = shownLines(usage).map((line) => JSON.parse(line));
    await test.platform.gateway.flush(); // the ledger is written behind the calls
    const costs = (await owner.get("/usage?groupBy=surface")).at("data") as object[]; // the client checked the shape
    expect(costs).to.have.length(shownCosts.length);
    for (const [index, row] of costs.entries()) expect(row).to.include(shownCosts[index]);
  });

  it("have an agent that answers from the manual", async () => {
    const agentId = (await admin.post("/agents", await example("agent.json"))).string("agentId");
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

  it("ask through LangChain: a retriever, ChatOpenAI and OpenAIEmbeddings", async () => {
    const env = { ...process.env, URL: test.url, KEY: test.keys.member };
    const program = [join(folder, "langchain.ts"), "Which refunds need an approval?"];
    const { stdout } = await promisify(execFile)(process.execPath, program, { env, timeout: 50_000 });
    expect(stdout).to.match(/^0\.\d{3} {2}Handling complaints/);
    expect(stdout).to.contain("A refund above 100 EUR needs the approval of an administrator");
    expect(stdout).to.match(/\d+ tokens, chatcmpl-log_/);
    expect(stdout).to.match(/vectors of 512 numbers: 0\.[1-9]/);
  });
});
