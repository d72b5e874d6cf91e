import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import { expect } from "chai";
import { patternIds } from "../../src/composite/patterns.ts";
import { toJsonSchema } from "../../src/lib/json-schema.ts";
import { queryBodySchema } from "../../src/rag/query-schemas.ts";
import { makeClient, valueAt } from "../support/http-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type ScriptedUpstream, startScriptedUpstream } from "../support/scripted-upstream.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const passages = "Sessions live in the memory of one server. Deploys restart every server.";
const input = `${passages}\n\nWhy do users lose their sessions after deploys?`;

/** A client of an agent runtime, connected with a key. */
async function connect(url: string, key: string): Promise<Client> {
  const client = new Client({ name: "test", version: "1.0.0" });
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit });
  // The SDK's own types disagree with each other under exactOptionalPropertyTypes.
  await client.connect(transport as Parameters<Client["connect"]>[0]);
  return client;
}

async function call(client: Client, name: string, given: Record<string, unknown> = {}) {
  const result = await client.callTool({ name, arguments: given });
  const value: unknown = JSON.parse(String(valueAt(result, "content[0].text")));
  return { isError: result.isError === true, value, at: (path: string) => valueAt(value, path) };
}

describe("the official client of the Model Context Protocol", () => {
  let test: TestPlatform;
  let client: Client;
  before(async () => {
    test = await startPlatform();
    client = await connect(test.url, test.keys.owner);
    const content = "# Pump P-100\n\nBleed the pump before the season, with a 9 mm key.";
    const loaded = await makeClient({ url: test.url, key: test.keys.owner }).post("/rag/ingest", { content });
    expect(loaded.status).to.equal(201);
  });
  after(async () => {
    await client.close();
    await test.close();
  });

  it("connects and agrees on the revision", async () => {
    expect(client.getServerVersion()).to.include({ name: "switchyard" });
    expect(client.getServerCapabilities()).to.have.all.keys("tools", "tasks");
    expect(client.getInstructions()).to.contain("jobId").and.contain("agents");
    expect(valueAt(client.transport, "protocolVersion")).to.equal("2025-11-25");
    expect(await client.ping()).to.deep.equal({});
  });

  it("lists the tools with the schemas of the HTTP interface", async () => {
    const { tools, nextCursor } = await client.listTools();
    expect(nextCursor).to.equal(undefined);
    expect(tools.map(({ name }) => name)).to.have.members([
      "svc_chat",
      "svc_rag_query",
      "svc_agent_run",
      "svc_composite_execute",
      "svc_job",
      "svc_models",
      "svc_health",
      "svc_org_create",
      "svc_org_get",
      "svc_org_add_tenant",
    ]);
    for (const { name, description, inputSchema } of tools) {
      expect(description, name).to.have.length.above(20);
      expect(inputSchema, name).to.include({ type: "object" });
    }
    const schemaOf = (name: string) => tools.find((tool) => tool.name === name)?.inputSchema;
    expect(schemaOf("svc_rag_query")).to.deep.equal(JSON.parse(JSON.stringify(toJsonSchema(queryBodySchema, "input"))));
    expect(valueAt(schemaOf("svc_chat"), "required")).to.deep.equal(["messages"]);
    expect(valueAt(schemaOf("svc_composite_execute"), "properties.pattern.enum")).to.deep.equal([...patternIds]);
  });

  it("svc_chat answers as POST /ai/chat does, and is counted to the surface mcp", async () => {
    const { isError, at } = await call(client, "svc_chat", {
      messages: [{ role: "user", content: `${passages} Where do sessions live?` }],
      model: "auto",
    });
    expect(isError).to.equal(false);
    expect(at("text")).to.contain("memory");
    expect(at("choices[0].finish_reason")).to.equal("stop");
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    expect((await owner.get(`/ai/logs/${at("logId")}`)).at("surface")).to.equal("mcp");
  });

  it("svc_rag_query finds ingested documents, of its own tenant only", async () => {
    const { at } = await call(client, "svc_rag_query", { query: "When is the pump bled?", topK: 3 });
    expect(at("results[0].content")).to.contain("before the season");
    const stranger = await connect(test.url, test.keys.stranger);
    const found = await call(stranger, "svc_rag_query", { query: "When is the pump bled?", topK: 3 });
    await stranger.close();
    expect(found.value).to.deep.equal({ results: [], coverage: 0 });
  });

  it("svc_models lists what can be asked, by provider and type", async () => {
    const { at } = await call(client, "svc_models", { provider: "edge", type: "chat" });
    expect(at("models[0]")).to.include({ provider: "edge", type: "chat" });
    const all = await call(client, "svc_models");
    expect(all.at("models")).to.have.length.above(10);
  });

  it("svc_health reports the parts", async () => {
    const { at } = await call(client, "svc_health");
    expect([at("status"), at("parts.workers.status")]).to.deep.equal(["ready", "up"]);
  });

  it("svc_agent_run runs an agent, named by id or name, as a job with an audit log", async () => {
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    const agent = { name: "Desk", model: "meta-llm", systemPrompt: "You answer from the manuals." };
    const tools = [{ type: "rag_query", config: {} }];
    const agentId = (await owner.post("/agents", { ...agent, tools })).string("agentId");
    const asked = { input: "When is the pump bled?" };
    for (const which of [{ agentId }, { name: "Desk" }]) {
      const { isError, at } = await call(client, "svc_agent_run", { ...which, ...asked });
      expect([isError, at("status")]).to.deep.equal([false, "completed"]);
      expect(at("output")).to.contain("before the season");
      const auditLog = await owner.get(`/agents/${agentId}/runs/${at("runId")}`);
      expect(auditLog.at("steps")).to.have.lengthOf(Number(at("steps")));
      expect(auditLog.at("integrity.verified")).to.equal(true);
      const job = await owner.get(`/jobs/${auditLog.string("jobId")}`);
      expect([job.at("kind"), job.at("status")]).to.deep.equal(["agent", "completed"]);
    }
    await owner.post("/agents", { ...agent, tools });
    for (const [which, code] of [
      [{ name: "Desk" }, "invalid_request"],
      [{ name: "Nobody" }, "not_found"],
      [{ agentId: "agt_01J00000000000000000000000" }, "not_found"],
    ] as const) {
      const refused = await call(client, "svc_agent_run", { ...which, ...asked });
      expect([refused.isError, refused.at("error.code")], JSON.stringify(which)).to.deep.equal([true, code]);
    }
    for (const which of [{}, { agentId, name: "Desk" }, { agent: agentId }]) {
      const wrong = await client.callTool({ name: "svc_agent_run", arguments: { ...which, ...asked } }).catch(String);
      expect(wrong).to.contain("-32602: agentId: give either agentId or name");
    }
    const misspelt = await call(client, "svc_agent_run", { agentId, ...asked, sesion: "desk-7" });
    expect([misspelt.isError, misspelt.at("_ignored")]).to.deep.equal([false, ["sesion"]]);
    const stranger = await connect(test.url, test.keys.stranger);
    const foreign = await call(stranger, "svc_agent_run", { agentId, ...asked });
    await stranger.close();
    expect(foreign.at("error.code")).to.equal("not_found");
  });

  it("svc_composite_execute runs as a job, whose trace is that of HTTP", async () => {
    const { isError, at } = await call(client, "svc_composite_execute", {
      pattern: "critique",
      profile: "coding",
      input,
    });
    expect([isError, at("pattern"), at("stepsExecuted")]).to.deep.equal([false, "critique", 3]);
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    const trace = await owner.get(`/composite/executions/${at("executionId")}`);
    expect(trace.at("steps")).to.have.lengthOf(3);
    const job = await owner.get(`/jobs/${trace.string("jobId")}`);
    expect([job.at("kind"), job.at("status")]).to.deep.equal(["composite", "completed"]);
  });

  it("svc_composite_execute obeys the guard: no job, no model call, no value in the error", async () => {
    const owner = makeClient({ url: test.url, key: test.keys.owner });
    const jobs = async () => (await owner.get("/jobs?kind=composite&limit=200")).at("data");
    const before = await jobs();
    expect(before).to.be.an("array");
    const { isError, at, value } = await call(client, "svc_composite_execute", {
      pattern: "critique",
      profile: "healthcare",
      input: "The SSN of the patient is 219-47-8831, what now?",
    });
    expect([isError, at("error.code"), at("error.type")]).to.deep.equal([
      true,
      "compliance_blocked",
      "compliance_error",
    ]);
    expect(JSON.stringify(value)).not.to.contain("8831");
    expect(await jobs()).to.deep.equal(before);
  });

  it("the tools of organizations work together", async () => {
    const made = await call(client, "svc_org_create", { name: "Acme" });
    const organizationId = String(made.at("organizationId"));
    const added = await call(client, "svc_org_add_tenant", { organizationId, name: "Branch" });
    expect(added.at("apiKey")).to.match(/^sk_/);
    const seen = await call(client, "svc_org_get", { organizationId });
    expect(seen.at("tenants[1].tenantId")).to.equal(added.at("tenantId"));
    const branch = await connect(test.url, String(added.at("apiKey")));
    expect((await branch.listTools()).tools).to.have.lengthOf((await client.listTools()).tools.length);
    await branch.close();
  });

  it("gets a tool's failure as a result that a model can read", async () => {
    const { isError, at } = await call(client, "svc_chat", {
      messages: [{ role: "user", content: "Hello" }],
      model: "no-such-model",
    });
    expect([isError, at("error.code")]).to.deep.equal([true, "unknown_model"]);
    expect(at("error.requestId")).to.match(/^req_/);
  });

  it("raises errors of the protocol as its own", async () => {
    const failureOf = (calling: Promise<unknown>) => calling.catch((thrown: unknown) => thrown);
    const unknown = await failureOf(client.callTool({ name: "svc_no_such", arguments: {} }));
    const wrong = await failureOf(client.callTool({ name: "svc_rag_query", arguments: { topK: 3 } }));
    for (const error of [unknown, wrong]) {
      expect(error).to.be.instanceOf(McpError);
      expect(valueAt(error, "code")).to.equal(ErrorCode.InvalidParams);
    }
    const method = await failureOf(client.listPrompts());
    expect(method).to.be.instanceOf(Error);
    const refused = await failureOf(connect(test.url, `sk_${"0".repeat(32)}`));
    expect(String(refused)).to.match(/401|invalid_api_key|unauthori[sz]ed/i);
  });

  it("serves many calls at the same time, each with its own answer", async () => {
    const asked = Array.from({ length: 20 }, (_, n) => `Ship ${n} is painted ${["red", "blue"][n % 2]} this year.`);
    const answers = await Promise.all(
      asked.map((content) =>
        call(client, "svc_chat", { messages: [{ role: "user", content: `${content} What of it?` }] }),
      ),
    );
    for (const [n, { at }] of answers.entries()) expect(at("text"), asked[n]).to.contain(`Ship ${n} `);
  });
});

describe("a long tool call", () => {
  let upstream: ScriptedUpstream;
  let test: TestPlatform;
  before(async () => {
    upstream = await startScriptedUpstream();
    const env = { EDGE_BASE_URL: upstream.url, EDGE_MODEL: "scripted", TOOL_WAIT_MS: "300" };
    test = await startPlatform({ env });
  });
  after(async () => {
    await test.close();
    await upstream.close();
  });

  it("returns the id of its job, which continues to its end", async () => {
    const client = await connect(test.url, test.keys.member);
    const held = Promise.withResolvers<string>();
    upstream.play(() => held.promise);
    const reported = await call(client, "svc_composite_execute", {
      pattern: "chain-of-thought",
      profile: "coding",
      input,
    });
    expect(reported.isError).to.equal(false);
    expect([reported.at("kind"), reported.at("status")]).to.deep.equal(["composite", "running"]);
    held.resolve("Because sessions live in memory.");
    const member = makeClient({ url: test.url, key: test.keys.member });
    await pollUntil(async () => (await member.get(String(reported.at("statusUrl")))).at("status") === "completed");
    const job = await member.get(`/jobs/${reported.at("jobId")}`);
    expect(job.at("result.executionId")).to.equal(reported.at("executionId"));
    expect(job.at("result.output")).to.contain("memory");
    await client.close();
  });

  it("returns the job and the runId of an agent's run", async () => {
    const client = await connect(test.url, test.keys.member);
    const member = makeClient({ url: test.url, key: test.keys.member });
    const agent = { name: "Slow", model: "meta-llm", systemPrompt: "You answer." };
    const agentId = (await member.post("/agents", agent)).string("agentId");
    const held = Promise.withResolvers<string>();
    upstream.play(() => held.promise);
    const reported = await call(client, "svc_agent_run", { agentId, input });
    expect([reported.isError, reported.at("kind"), reported.at("status")]).to.deep.equal([false, "agent", "running"]);
    held.resolve("In memory.");
    await pollUntil(async () => (await member.get(String(reported.at("statusUrl")))).at("status") === "completed");
    const run = await member.get(`/agents/${agentId}/runs/${reported.at("runId")}`);
    expect([run.at("status"), run.at("finalOutput")]).to.deep.equal(["completed", "In memory."]);
    await client.close();
  });

  it("can be followed to its result by a client that speaks MCP alone", async () => {
    const client = await connect(test.url, test.keys.member);
    const stranger = await connect(test.url, test.keys.stranger);
    const held = Promise.withResolvers<string>();
    upstream.play(() => held.promise);
    const begun = await call(client, "svc_composite_execute", {
      pattern: "chain-of-thought",
      profile: "coding",
      input,
    });
    const jobId = begun.at("jobId");
    const still = await call(client, "svc_job", { jobId });
    expect([still.isError, still.at("jobId"), still.at("status")]).to.deep.equal([false, jobId, "running"]);
    const foreign = await call(stranger, "svc_job", { jobId });
    expect([foreign.isError, foreign.at("error.code")]).to.deep.equal([true, "not_found"]);
    held.resolve("Because sessions live in memory.");
    const ended = await pollUntil(async () => {
      const answer = await call(client, "svc_job", { jobId });
      return answer.at("output") === undefined ? null : answer;
    });
    expect(ended.at("output")).to.contain("memory");
    expect(ended.at("executionId")).to.equal(begun.at("executionId"));
    await Promise.all([client.close(), stranger.close()]);
  });

  it("does not cancel its job when the client leaves", async () => {
    const client = await connect(test.url, test.keys.member);
    const held = Promise.withResolvers<string>();
    upstream.play(() => held.promise);
    const given = { pattern: "chain-of-thought", profile: "coding", input };
    const calling = client.callTool({ name: "svc_composite_execute", arguments: given }).catch(() => null);
    await pollUntil(async () => upstream.calls.length > 0);
    await client.close();
    await calling;
    held.resolve("Because sessions live in memory.");
    const member = makeClient({ url: test.url, key: test.keys.member });
    const newest = async () => (await member.get("/jobs?kind=composite&limit=1")).at("data[0].status");
    await pollUntil(async () => (await newest()) === "completed");
  });
});
