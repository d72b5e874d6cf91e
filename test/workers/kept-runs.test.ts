import { expect } from "chai";
import { loadConfig } from "../../src/config/config.ts";
import { firstIdAt, newId } from "../../src/lib/ids.ts";
import { openPlatform } from "../../src/platform.ts";
import type { WorkflowRunRecord } from "../../src/store/workflow-run-store.ts";
import { removeExcess, removeExpired } from "../../workers/maintenance.ts";
import { makeCompletion } from "../support/completion-record.ts";
import { type ApiClient, makeClient } from "../support/http-client.ts";
import { callTool } from "../support/mcp-call.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const MAX_RUNS = 3;
const MAX_RUN_BYTES = 100_000;
/** Call logs have half of what runs have, and 1 KiB each. */
const MAX_CALL_LOG_BYTES = MAX_RUN_BYTES / 2;
const KEPT_LOGS = 48;
const DAY_MS = 86_400_000;
const later = { headers: { prefer: "respond-async" } };
const wait = { headers: { prefer: "wait=60" } };

describe("runs and call logs that a tenant keeps", () => {
  let test: TestPlatform;
  before(async () => {
    const env = {
      MAX_RUNS: `${MAX_RUNS}`,
      MAX_STORED_BYTES: `${MAX_RUN_BYTES}`,
      WORKFLOW_RUN_DAYS: "10",
    };
    test = await startPlatform({ env });
  });
  after(() => test.close());

  /** A tenant of its own. */
  const found = async (name: string) => {
    const { tenancy } = test.platform;
    const tenantId = await tenancy.ensureTenant(name);
    const { key } = await tenancy.createKey({ tenantId, role: "owner", subject: "o" });
    return { tenantId, client: makeClient({ url: test.url, key }) };
  };
  const usedBy = async (client: ApiClient, name: string) =>
    (await client.get("/usage")).at(`quotas.${name}`) as { used: number; limit: number };
  const agentOf = async (client: ApiClient) =>
    (await client.post("/agents", { name: "Desk", model: "meta-llm", systemPrompt: "You answer." })).string("agentId");
  const workflowOf = async (client: ApiClient) =>
    (await client.post("/workflows", { name: "Desk", steps: [{ type: "rag_query", query: "Pumps" }] })).string(
      "workflowId",
    );

  it("are limited in number, runs of all kinds together, also for a process that starts afterwards", async () => {
    const { tenantId, client } = await found("runner");
    const [agentId, workflowId] = [await agentOf(client), await workflowOf(client)];
    const ways = [
      () => client.post(`/agents/${agentId}/run`, { input: "Hello" }, later),
      () => client.post(`/workflows/${workflowId}/execute`, {}, later),
      () => client.post("/composite/execute", { pattern: "critique", profile: "coding", input: "Hello" }, later),
    ];
    for (const run of ways) expect((await run()).status).to.equal(202);
    expect(await usedBy(client, "runs")).to.deep.equal({ used: 3, limit: MAX_RUNS });
    for (const run of ways) {
      const refused = await run();
      expect([refused.status, refused.at("error.code")]).to.deep.equal([413, "quota_exceeded"]);
      expect(refused.at("error.details")).to.deep.equal({ quota: "runs", limit: MAX_RUNS });
      expect(refused.string("error.message")).to.include("MAX_RUNS");
    }
    expect((await client.post("/v1/chat/completions", chatWith(agentId))).status, "a chat with an agent").to.equal(413);
    const asTool = await callTool(client, "svc_agent_run", { agentId, input: "Hello" });
    expect(asTool.isError).to.equal(true);
    expect(JSON.stringify(asTool.value)).to.include("MAX_RUNS");
    expect((await client.get("/jobs")).at("data"), "nothing is left of what was refused").to.have.lengthOf(3);

    const { client: other } = await found("another runner");
    expect((await other.post(`/agents/${await agentOf(other)}/run`, { input: "Hello" }, later)).status).to.equal(202);
    const restarted = await openPlatform(loadConfig(test.env), { name: "restarted", logger: test.platform.logger });
    try {
      const refusal = await restarted.quotas.check(tenantId, "runs").catch((error: unknown) => error);
      expect(refusal).to.have.property("code", "quota_exceeded");
    } finally {
      await restarted.close();
    }
  });

  it("are limited in bytes, those of their inputs first", async () => {
    const { client } = await found("writer");
    const agentId = await agentOf(client);
    const run = () => client.post(`/agents/${agentId}/run`, { input: "é".repeat(30_000) }, wait);
    expect((await run()).status).to.equal(200);
    expect((await usedBy(client, "runBytes")).used).to.be.within(60_000, MAX_RUN_BYTES);
    const refused = await run();
    expect([refused.status, refused.at("error.details")]).to.deep.equal([
      413,
      { quota: "runBytes", limit: MAX_RUN_BYTES },
    ]);
  });

  it("count the results of their steps, and no longer once they are removed", async () => {
    const { store } = test.platform;
    const { tenantId, client } = await found("stepper");
    const old = new Date(Date.now() - 20 * DAY_MS);
    const record = runOf(tenantId, old);
    const { _id: runId } = record;
    await store.workflowRuns.insert(record);
    const atBegin = (await usedBy(client, "runBytes")).used;
    const step = { status: "completed" as const, startedAt: old, finishedAt: old, attempts: 1, type: "ai_completion" };
    for (const seq of [0, 1]) {
      const place = { _id: `${runId}:${seq}`, tenantId, runId, seq, path: `${seq}`, id: `s${seq}` };
      await store.workflowRuns.addStep({ ...step, ...place, output: "x".repeat(20_000) });
    }
    const end = { status: "completed" as const, output: "x".repeat(10_000), finishedAt: old };
    expect(await store.workflowRuns.finish(tenantId, runId, end)).to.equal(true);
    expect(await store.workflowRuns.finish(tenantId, runId, end), "a second time").to.equal(false);
    expect((await usedBy(client, "runBytes")).used - atBegin).to.be.within(50_000, 51_000);
    expect((await usedBy(client, "runs")).used).to.equal(1);
    await removeExpired(test.platform);
    expect(await store.workflowRuns.get(tenantId, runId)).to.equal(null);
    expect([(await usedBy(client, "runBytes")).used, (await usedBy(client, "runs")).used]).to.deep.equal([0, 0]);
  });

  it("count the results of steps that a worker made", async () => {
    const { client } = await found("searcher");
    const content = Array.from({ length: 1_000 }, (_, n) => `Valve ${n}.`).join(" ");
    expect((await client.post("/rag/ingest", { content }, wait)).status).to.equal(201);
    const steps = [{ type: "rag_query", query: "valve", topK: 20 }];
    const workflowId = (await client.post("/workflows", { name: "Search", steps })).string("workflowId");
    const run = await client.post(`/workflows/${workflowId}/execute`, {}, wait);
    const output = JSON.stringify(run.at("output"));
    expect(output).to.have.length.above(content.length);
    // It is kept as the step's result and as that of the run.
    expect((await usedBy(client, "runBytes")).used).to.be.within(2 * output.length, MAX_RUN_BYTES);
  });

  it("do not count where their job was not accepted", async () => {
    const { store } = test.platform;
    const { tenantId, client } = await found("refused");
    const record = runOf(tenantId, new Date());
    await store.workflowRuns.insert(record);
    expect(await store.workflowRuns.remove(tenantId, record._id)).to.equal(true);
    expect([(await usedBy(client, "runBytes")).used, (await usedBy(client, "runs")).used]).to.deep.equal([0, 0]);
  });

  it("lose the oldest call logs beyond a tenant's bytes, and no others", async () => {
    const { platform } = test;
    const [{ tenantId, client }, quiet] = [await found("logger"), await found("quiet")];
    const logs = Array.from({ length: 60 }, () => makeCompletion({ tenantId }));
    const young = makeCompletion({ tenantId: quiet.tenantId });
    await platform.store.completions.insertMany([...logs, young]);
    await platform.store.completions.insertMany(logs); // repeated, as after a failed write
    expect(await usedBy(client, "callLogBytes")).to.deep.equal({ used: 60 * 1_024, limit: MAX_CALL_LOG_BYTES });
    await removeExcess(platform);
    const listed = (await client.get("/ai/logs?limit=100")).at("data") as { logId: string }[];
    expect(listed.map(({ logId }) => logId)).to.deep.equal(
      logs
        .slice(-KEPT_LOGS)
        .map(({ _id }) => _id)
        .reverse(),
    );
    expect((await usedBy(client, "callLogBytes")).used).to.equal(KEPT_LOGS * 1_024);
    expect((await quiet.client.get(`/ai/logs/${young._id}`)).status, "another tenant's").to.equal(200);
    expect(Number((await client.get("/usage")).at("total.requests")), "usage is apart").to.equal(0);
  });
});

const chatWith = (agentId: string) => ({
  model: `agent:${agentId}`,
  messages: [{ role: "user", content: "Hello" }],
});

/** A run of a workflow that is open. */
function runOf(tenantId: string, at: Date): WorkflowRunRecord {
  const caller = { keyId: "key", subject: "o", role: "owner" as const };
  return {
    _id: `${firstIdAt("workflowRun", at).slice(0, -4)}0001`,
    tenantId,
    jobId: newId("job"),
    caller,
    isOpen: true,
    createdAt: at,
    updatedAt: at,
    workflowId: newId("workflow"),
    version: 1,
    name: "Desk",
    definition: "{}",
  };
}
