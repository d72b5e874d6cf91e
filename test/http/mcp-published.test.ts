import { expect } from "chai";
import { type ApiClient, valueAt } from "../support/http-client.ts";
import { rpc, toolCall } from "../support/mcp-call.ts";
import { postStateless } from "../support/mcp-stateless.ts";
import { whileOthersWork } from "../support/while-others-work.ts";
import { chatModel, openWorkflowHarness, type WorkflowHarness } from "../support/workflow-harness.ts";

const headers = { "mcp-protocol-version": "2025-11-25" };
const description = "Greets a person by name.";
const inputSchema = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 50 },
    place: { type: "object", properties: { city: { type: "string" } } },
  },
  required: ["name"],
};
const greet = { type: "ai_completion", id: "greet", model: chatModel, prompt: "Greet {{ input.name }}" };
const workflow = { name: "Greeting", steps: [greet], inputSchema };
const agent = { name: "Desk", model: chatModel, systemPrompt: "You answer." };

describe("tools that a tenant publishes", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness();
    harness.model.play(() => ({ text: "Hello, Ada!" }));
  });
  after(() => harness?.close());

  type Tool = { name: string; description: string; inputSchema: object; outputSchema: object; title: string };
  const list = async (client: ApiClient): Promise<Tool[]> =>
    (await client.post("/mcp", rpc(1, "tools/list"), { headers })).at("result.tools") as Tool[];
  const find = async (name: string, client = harness.member) => (await list(client)).find((tool) => tool.name === name);
  const call = (name: string, given: object, client = harness.member) =>
    client.post("/mcp", toolCall(1, name, given), { headers });
  const publish = (name: string, about = description) => ({ publish: { name, description: about } });
  const refusalOf = ({ status, at }: Awaited<ReturnType<typeof call>>) => [status, at("error.param")];

  it("run a workflow by its input schema, and return its output", async () => {
    await harness.create([greet], { inputSchema, ...publish("greet") });
    const tool = await find("greet");
    expect(tool).to.deep.include({ name: "greet", description, inputSchema, title: "greet" });
    expect(tool?.outputSchema).to.include({ type: "object" });
    const { at } = await call("greet", { name: "Ada" });
    expect(at("result.content")).to.deep.equal([{ type: "text", text: "Hello, Ada!" }]);
    expect(at("result.structuredContent")).to.deep.include({ status: "completed", output: "Hello, Ada!" });
    const runId = at("result.structuredContent.runId");
    const runs = await harness.member.get(`/workflows/${at("result.structuredContent.workflowId")}/runs`);
    expect(runs.at("data[0].runId")).to.equal(runId);
  });

  it("run a workflow with whole numbers that a double would round, as texts with all their digits", async () => {
    await harness.create([{ ...greet, prompt: "Greet {{ input.n }}" }], publish("exact"));
    const message = JSON.stringify(toolCall(1, "exact", { n: 0 })).replace('"n":0', '"n":9007199254740993');
    const options = { raw: message, headers: { ...headers, "content-type": "application/json" } };
    const called = await harness.member.request("POST", "/mcp", options);
    const { workflowId, runId } = called.at("result.structuredContent") as { workflowId: string; runId: string };
    const run = await harness.member.get(`/workflows/${workflowId}/runs/${runId}`);
    expect(run.at("input")).to.deep.equal({ n: "9007199254740993" });
  });

  it("run an agent by its input", async () => {
    expect((await harness.member.post("/agents", { ...agent, ...publish("ask_desk") })).status).to.equal(201);
    expect(valueAt((await find("ask_desk"))?.inputSchema, "required")).to.deep.equal(["input"]);
    const { at } = await call("ask_desk", { input: "Who?" });
    expect(at("result.structuredContent")).to.deep.include({ status: "completed", output: "Hello, Ada!" });
    const wrong = await call("ask_desk", { question: "Who?" });
    expect([wrong.at("error.code"), wrong.at("error.data[0].path")]).to.deep.equal([-32_602, "input"]);
  });

  it("search a set of documents, by a workflow of one step", async () => {
    const load = (content: string) =>
      harness.member.post("/rag/ingest", { content }, { headers: { prefer: "wait=30" } });
    const manual = (await load("Bleed the pump before the season.")).string("documentId");
    await load("The pump of the neighbour is never bled.");
    const step = { type: "rag_query", id: "search", query: "{{ input.query }}", documentIds: [manual] };
    const schema = { type: "object", properties: { query: { type: "string" } }, required: ["query"] };
    await harness.create([step], { inputSchema: schema, ...publish("search_manuals") });
    const { at } = await call("search_manuals", { query: "When is the pump bled?" });
    expect(at("result.structuredContent.output")).to.have.lengthOf(1);
    expect(at("result.structuredContent.output[0].documentId")).to.equal(manual);
  });

  it("refuse wrong arguments by their path, and start nothing", async () => {
    const workflowId = await harness.create([greet], { inputSchema, ...publish("greet_strictly") });
    for (const [given, path] of [
      [{}, "name"],
      [{ name: 7 }, "name"],
      [{ name: "Ada", place: { city: 7 } }, "place.city"],
      [{ name: "Ada", more: "x".repeat(300_000) }, ""],
    ] as const) {
      const { status, at } = await call("greet_strictly", given);
      expect([status, at("error.code"), at("error.data[0].path")]).to.deep.equal([200, -32_602, path]);
    }
    expect((await harness.member.get(`/workflows/${workflowId}/runs`)).at("data")).to.deep.equal([]);
  });

  it("belong to their tenant alone", async () => {
    await harness.create([greet], publish("mine"));
    expect(await find("mine", harness.admin)).to.include({ name: "mine" });
    expect(await find("mine", harness.stranger)).to.equal(undefined);
    const { at } = await call("mine", {}, harness.stranger);
    expect(at("error.code")).to.equal(-32_602);
    const theirs = await harness.stranger.post("/workflows", { ...workflow, ...publish("mine") });
    expect(theirs.status, "a name of another tenant is free").to.equal(201);
  });

  it("have names of their own, which cannot be the product's", async () => {
    await harness.create([greet], publish("only_one"));
    for (const [path, body] of [
      ["/workflows", workflow],
      ["/agents", agent],
    ] as const) {
      const taken = await harness.member.post(path, { ...body, ...publish("only_one") });
      expect(refusalOf(taken)).to.deep.equal([409, "publish.name"]);
      for (const name of ["svc_chat", "svc_new", "SVC_chat", "", "a b", "é", "x".repeat(65)]) {
        const refused = await harness.member.post(path, { ...body, ...publish(name) });
        expect(refusalOf(refused), name).to.deep.equal([400, "publish.name"]);
      }
      const long = await harness.member.post(path, { ...body, ...publish("long", "x".repeat(1_025)) });
      expect(refusalOf(long)).to.deep.equal([400, "publish.description"]);
    }
    const list = await harness.member.post("/workflows", {
      ...workflow,
      inputSchema: { type: "array" },
      ...publish("arr"),
    });
    expect(refusalOf(list)).to.deep.equal([400, "inputSchema.type"]);
  });

  it("are renamed and withdrawn with their definition", async () => {
    const workflowId = await harness.create([greet], { inputSchema, ...publish("first") });
    const put = (more: object) =>
      harness.member.request("PUT", `/workflows/${workflowId}`, { body: { ...workflow, ...more } });
    expect((await put(publish("first", "Greets again."))).status, "its own name").to.equal(200);
    expect((await find("first"))?.description).to.equal("Greets again.");
    expect((await put(publish("second"))).at("publish.name")).to.equal("second");
    expect([await find("first"), (await find("second"))?.name]).to.deep.equal([undefined, "second"]);
    expect((await put({})).status).to.equal(200);
    expect(await find("second")).to.equal(undefined);
    expect((await call("second", { name: "Ada" })).at("error.code")).to.equal(-32_602);
    await put(publish("second"));
    expect((await harness.member.delete(`/workflows/${workflowId}`)).status).to.equal(204);
    expect(await find("second"), "removed").to.equal(undefined);
  });

  it("obey the guards of their definition", async () => {
    const tools = [{ type: "composite", config: { pattern: "critique", profile: "healthcare" } }];
    await harness.member.post("/agents", { ...agent, tools, ...publish("ask_ward") });
    const { at, text } = await call("ask_ward", { input: "The SSN of the patient is 219-47-8831, what now?" });
    expect([at("result.isError"), text.includes("8831")]).to.deep.equal([true, false]);
    expect(text).to.contain("compliance_blocked");
  });

  it("return no more of a long output than a model should read", async () => {
    harness.model.play(() => ({ text: "x".repeat(150_000) }));
    try {
      await harness.create([greet], publish("long_winded"));
      const { at } = await call("long_winded", { name: "Ada" });
      expect(at("result.content[0].text")).to.have.lengthOf(100_001);
      expect(at("result.structuredContent.isOutputCut")).to.equal(true);
    } finally {
      harness.model.play(() => ({ text: "Hello, Ada!" }));
    }
  });

  it("repeat arguments in the headers that their schema names", async () => {
    const named = { type: "string", "x-mcp-header": "Region" };
    const schema = { type: "object", properties: { region: named, size: { type: "integer", "x-mcp-header": "Size" } } };
    await harness.create([greet], { inputSchema: schema, ...publish("by_region") });
    const send = (given: object, sent: Record<string, string>) =>
      postStateless(harness.member, "tools/call", { name: "by_region", arguments: given }, { headers: sent });
    const region = { "mcp-param-region": "us-west1" };
    for (const [given, sent] of [
      [{ region: "us-west1" }, region],
      [{ region: "Köln" }, { "mcp-param-region": `=?base64?${Buffer.from("Köln").toString("base64")}?=` }],
      [{ size: 42 }, { "mcp-param-size": "42" }],
      [{}, {}],
    ] as [object, Record<string, string>][]) {
      const { status, at } = await send({ ...given, name: "x" }, sent);
      expect([status, at("result.resultType")], JSON.stringify(given)).to.deep.equal([200, "complete"]);
    }
    for (const [given, sent] of [
      [{ region: "us-west1" }, {}],
      [{ region: "us-east1" }, region],
      [{ region: "Köln" }, { "mcp-param-region": "=?base64?S8O2bG4?=" }],
    ] as [object, Record<string, string>][]) {
      const { status, at } = await send(given, sent);
      expect([status, at("error.code")], JSON.stringify(given)).to.deep.equal([400, -32_020]);
    }
    const twice = { ...schema, properties: { a: named, b: named } };
    const refused = await harness.member.post("/workflows", { ...workflow, inputSchema: twice, ...publish("twice") });
    expect(refusalOf(refused)).to.deep.equal([400, "inputSchema.properties.b.x-mcp-header"]);
  });

  it("are listed page by page when they are many", async () => {
    const large = { ...inputSchema, description: "d".repeat(30_000) };
    for (let n = 0; n < 10; n += 1) await harness.create([greet], { inputSchema: large, ...publish(`zz_${n}`) });
    const first = await harness.member.post("/mcp", rpc(1, "tools/list"), { headers });
    const cursor = first.string("result.nextCursor");
    const second = await harness.member.post("/mcp", rpc(1, "tools/list", { cursor }), { headers });
    const all = [first, second].flatMap(({ at }) => (at("result.tools") as Tool[]).map(({ name }) => name));
    expect(all).to.include.members(["zz_0", "zz_9", "svc_chat"]);
    expect(new Set(all).size).to.equal(all.length);
    expect(second.at("result.nextCursor")).to.equal(undefined);
  });

  it("are the same in a batch, whose responses stand in one JSON", async () => {
    await harness.create([greet], { inputSchema, ...publish("in_batch") });
    const sent = { "mcp-protocol-version": "2025-03-26" };
    const alone = await harness.member.post("/mcp", rpc("é", "tools/list"), { headers: sent });
    const batch = await harness.member.post("/mcp", [rpc(7, "ping"), rpc("é", "tools/list")], { headers: sent });
    expect(batch.at("[1]")).to.deep.equal(alone.body);
    const tools = alone.at("result.tools") as Tool[];
    expect(tools.find(({ name }) => name === "in_batch")?.inputSchema).to.deep.equal(inputSchema);
  });

  it("are read a page at a time, and one page at a time for a tenant while others work", async () => {
    const { workflows } = harness.test.platform;
    const { listPublished } = workflows;
    let running = 0;
    const seen: { running: number; read: number }[] = [];
    workflows.listPublished = async (...asked) => {
      running += 1;
      const page = await listPublished(...asked);
      seen.push({ running, read: page.tools.length });
      running -= 1;
      return page;
    };
    try {
      const large = { ...inputSchema, description: "d".repeat(31_000) };
      for (let n = 0; n < 30; n += 1) await harness.create([greet], { inputSchema: large, ...publish(`aa_${n}`) });
      await whileOthersWork(harness.stranger, () => Promise.all(Array.from({ length: 8 }, () => list(harness.member))));
      expect(Math.max(...seen.map((one) => one.running)), "at once").to.equal(1);
      expect(Math.max(...seen.map((one) => one.read)), "on a page").to.be.below(12);
      expect(seen).to.have.lengthOf(8);
    } finally {
      workflows.listPublished = listPublished;
    }
  });
});
